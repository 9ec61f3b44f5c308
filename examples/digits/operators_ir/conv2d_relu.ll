; SPDX-License-Identifier: Apache-2.0
; operators/conv2d_relu.c as LLVM IR for any target: clang -O1 -emit-llvm, without triple, data layout and CPU.

define i32 @conv2d_relu(ptr nocapture noundef readonly %image, ptr nocapture noundef readonly %weight, ptr nocapture noundef readonly %bias, ptr nocapture noundef writeonly %result) nounwind {
entry:
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.cond.cleanup4
  ret i32 0

for.body:                                         ; preds = %entry, %for.cond.cleanup4
  %indvars.iv = phi i32 [ 9, %entry ], [ %indvars.iv.next, %for.cond.cleanup4 ]
  %result.addr.092 = phi ptr [ %result, %entry ], [ %incdec.ptr, %for.cond.cleanup4 ]
  %y.091 = phi i32 [ 0, %entry ], [ %inc39, %for.cond.cleanup4 ]
  %smin = call i32 @llvm.smin.i32(i32 %indvars.iv, i32 3)
  %cmp.inv.i.not = icmp eq i32 %y.091, 0
  %cond.i = zext i1 %cmp.inv.i.not to i32
  %sub.i71 = sub nuw nsw i32 9, %y.091
  %cmp.i = icmp ult i32 %sub.i71, 3
  %cond.i72 = select i1 %cmp.i, i32 %sub.i71, i32 3
  %cmp1483 = icmp sgt i32 %cond.i72, %cond.i
  br label %for.body5

for.cond.cleanup4:                                ; preds = %for.cond.cleanup11
  %inc39 = add nuw nsw i32 %y.091, 1
  %indvars.iv.next = add nsw i32 %indvars.iv, -1
  %exitcond95.not = icmp eq i32 %inc39, 8
  br i1 %exitcond95.not, label %for.cond.cleanup, label %for.body

for.body5:                                        ; preds = %for.body, %for.cond.cleanup11
  %result.addr.190 = phi ptr [ %result.addr.092, %for.body ], [ %incdec.ptr, %for.cond.cleanup11 ]
  %x.089 = phi i32 [ 0, %for.body ], [ %inc36, %for.cond.cleanup11 ]
  %cmp.inv.i74.not = icmp eq i32 %x.089, 0
  %cond.i75 = zext i1 %cmp.inv.i74.not to i32
  %sub.i76 = sub nuw nsw i32 9, %x.089
  %cmp.i77 = icmp ult i32 %sub.i76, 3
  %cond.i78 = select i1 %cmp.i77, i32 %sub.i76, i32 3
  %sub = sub nsw i32 %cond.i78, %cond.i75
  %add = add nuw nsw i32 %x.089, -9
  %sub8 = add nsw i32 %add, %cond.i75
  %cmp9.i = icmp sgt i32 %sub, 0
  br label %for.body12

for.cond.cleanup11:                               ; preds = %for.cond.cleanup15
  %inc36 = add nuw nsw i32 %x.089, 1
  %exitcond94.not = icmp eq i32 %inc36, 8
  br i1 %exitcond94.not, label %for.cond.cleanup4, label %for.body5

for.body12:                                       ; preds = %for.body5, %for.cond.cleanup15
  %result.addr.288 = phi ptr [ %result.addr.190, %for.body5 ], [ %incdec.ptr, %for.cond.cleanup15 ]
  %output.086 = phi i32 [ 0, %for.body5 ], [ %inc33, %for.cond.cleanup15 ]
  %arrayidx = getelementptr inbounds i32, ptr %bias, i32 %output.086
  %0 = load i32, ptr %arrayidx, align 4
  br i1 %cmp1483, label %for.body16.lr.ph, label %for.cond.cleanup15

for.body16.lr.ph:                                 ; preds = %for.body12
  %mul20 = mul nuw nsw i32 %output.086, 3
  br label %for.body16

for.cond.cleanup15:                               ; preds = %dot.exit, %for.body12
  %sum.0.lcssa = phi i32 [ %0, %for.body12 ], [ %add30, %dot.exit ]
  %cmp.i79 = icmp slt i32 %sum.0.lcssa, 1
  %add.i = add nsw i32 %sum.0.lcssa, 16
  %shr.i = ashr i32 %add.i, 5
  %cmp1.i = icmp slt i32 %shr.i, 127
  %cond.i80 = select i1 %cmp1.i, i32 %shr.i, i32 127
  %conv.i = trunc i32 %cond.i80 to i8
  %retval.0.i = select i1 %cmp.i79, i8 0, i8 %conv.i
  %incdec.ptr = getelementptr inbounds i8, ptr %result.addr.288, i32 1
  store i8 %retval.0.i, ptr %result.addr.288, align 1
  %inc33 = add nuw nsw i32 %output.086, 1
  %exitcond93.not = icmp eq i32 %inc33, 8
  br i1 %exitcond93.not, label %for.cond.cleanup11, label %for.body12

for.body16:                                       ; preds = %for.body16.lr.ph, %dot.exit
  %row.085 = phi i32 [ %cond.i, %for.body16.lr.ph ], [ %inc, %dot.exit ]
  %sum.084 = phi i32 [ %0, %for.body16.lr.ph ], [ %add30, %dot.exit ]
  %add17 = add nuw nsw i32 %row.085, %y.091
  %sub18 = shl i32 %add17, 3
  %add19 = add i32 %sub8, %sub18
  %add21 = add nuw nsw i32 %row.085, %mul20
  %mul22 = mul nuw nsw i32 %add21, 3
  %add23 = add nuw nsw i32 %mul22, %cond.i75
  %arrayidx25 = getelementptr inbounds i8, ptr %image, i32 %add19
  %arrayidx27 = getelementptr inbounds i8, ptr %weight, i32 %add23
  br i1 %cmp9.i, label %for.body.i, label %dot.exit

for.body.i:                                       ; preds = %for.body16, %for.body.i
  %i.011.i = phi i32 [ %inc.i, %for.body.i ], [ 0, %for.body16 ]
  %sum.010.i = phi i32 [ %add.i82, %for.body.i ], [ 0, %for.body16 ]
  %arrayidx.i = getelementptr inbounds i8, ptr %arrayidx25, i32 %i.011.i
  %1 = load i8, ptr %arrayidx.i, align 1
  %conv.i81 = sext i8 %1 to i32
  %arrayidx1.i = getelementptr inbounds i8, ptr %arrayidx27, i32 %i.011.i
  %2 = load i8, ptr %arrayidx1.i, align 1
  %conv2.i = sext i8 %2 to i32
  %mul.i = mul nsw i32 %conv2.i, %conv.i81
  %add.i82 = add nsw i32 %mul.i, %sum.010.i
  %inc.i = add nuw nsw i32 %i.011.i, 1
  %exitcond.not.i = icmp eq i32 %inc.i, %sub
  br i1 %exitcond.not.i, label %dot.exit, label %for.body.i

dot.exit:                                         ; preds = %for.body.i, %for.body16
  %sum.0.lcssa.i = phi i32 [ 0, %for.body16 ], [ %add.i82, %for.body.i ]
  %add30 = add nsw i32 %sum.0.lcssa.i, %sum.084
  %inc = add nuw nsw i32 %row.085, 1
  %exitcond.not = icmp eq i32 %inc, %smin
  br i1 %exitcond.not, label %for.cond.cleanup15, label %for.body16
}

declare i32 @llvm.smin.i32(i32, i32) #1
