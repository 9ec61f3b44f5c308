; SPDX-License-Identifier: Apache-2.0
; operators/max_pool.c as LLVM IR for any target: clang -O1 -emit-llvm, without triple, data layout and CPU.

define i32 @max_pool(ptr nocapture noundef readonly %features, ptr nocapture noundef writeonly %result) nounwind {
entry:
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %entry, %for.cond.cleanup3
  %result.addr.070 = phi ptr [ %result, %entry ], [ %incdec.ptr, %for.cond.cleanup3 ]
  %y.069 = phi i32 [ 0, %entry ], [ %add39, %for.cond.cleanup3 ]
  %mul = shl nsw i32 %y.069, 3
  br label %for.body4

for.cond.cleanup:                                 ; preds = %for.cond.cleanup3
  ret i32 0

for.cond.cleanup3:                                ; preds = %for.cond.cleanup8
  %add39 = add nuw nsw i32 %y.069, 2
  %cmp = icmp ult i32 %y.069, 6
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.cleanup

for.body4:                                        ; preds = %for.cond1.preheader, %for.cond.cleanup8
  %result.addr.168 = phi ptr [ %result.addr.070, %for.cond1.preheader ], [ %incdec.ptr, %for.cond.cleanup8 ]
  %x.067 = phi i32 [ 0, %for.cond1.preheader ], [ %add36, %for.cond.cleanup8 ]
  %add = add nuw nsw i32 %x.067, %mul
  %mul5 = shl nsw i32 %add, 3
  %arrayidx = getelementptr inbounds i8, ptr %features, i32 %mul5
  br label %for.cond10.preheader

for.cond10.preheader:                             ; preds = %for.body4, %for.cond.cleanup12
  %result.addr.266 = phi ptr [ %result.addr.168, %for.body4 ], [ %incdec.ptr, %for.cond.cleanup12 ]
  %channel.065 = phi i32 [ 0, %for.body4 ], [ %inc33, %for.cond.cleanup12 ]
  br label %for.cond14.preheader

for.cond.cleanup8:                                ; preds = %for.cond.cleanup12
  %add36 = add nuw nsw i32 %x.067, 2
  %cmp2 = icmp ult i32 %x.067, 6
  br i1 %cmp2, label %for.body4, label %for.cond.cleanup3

for.cond14.preheader:                             ; preds = %for.cond10.preheader, %for.cond.cleanup16
  %row.064 = phi i32 [ 0, %for.cond10.preheader ], [ %inc30, %for.cond.cleanup16 ]
  %largest.063 = phi i8 [ -128, %for.cond10.preheader ], [ %cond, %for.cond.cleanup16 ]
  %mul18 = shl nsw i32 %row.064, 3
  br label %for.body17

for.cond.cleanup12:                               ; preds = %for.cond.cleanup16
  %incdec.ptr = getelementptr inbounds i8, ptr %result.addr.266, i32 1
  store i8 %cond, ptr %result.addr.266, align 1
  %inc33 = add nuw nsw i32 %channel.065, 1
  %exitcond.not = icmp eq i32 %inc33, 8
  br i1 %exitcond.not, label %for.cond.cleanup8, label %for.cond10.preheader

for.cond.cleanup16:                               ; preds = %for.body17
  %inc30 = add nuw nsw i32 %row.064, 1
  %cmp11 = icmp eq i32 %row.064, 0
  br i1 %cmp11, label %for.cond14.preheader, label %for.cond.cleanup12

for.body17:                                       ; preds = %for.cond14.preheader, %for.body17
  %column.062 = phi i32 [ 0, %for.cond14.preheader ], [ %inc, %for.body17 ]
  %largest.161 = phi i8 [ %largest.063, %for.cond14.preheader ], [ %cond, %for.body17 ]
  %add19 = add nuw nsw i32 %column.062, %mul18
  %mul20 = shl nsw i32 %add19, 3
  %add21 = add nuw nsw i32 %mul20, %channel.065
  %arrayidx22 = getelementptr inbounds i8, ptr %arrayidx, i32 %add21
  %0 = load i8, ptr %arrayidx22, align 1
  %cmp24 = icmp sgt i8 %0, %largest.161
  %cond = select i1 %cmp24, i8 %0, i8 %largest.161
  %inc = add nuw nsw i32 %column.062, 1
  %cmp15 = icmp eq i32 %column.062, 0
  br i1 %cmp15, label %for.body17, label %for.cond.cleanup16
}
