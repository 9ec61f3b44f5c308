; SPDX-License-Identifier: Apache-2.0
; operators/arg_max.c as LLVM IR for any target: clang -O1 -emit-llvm, without triple, data layout and CPU.

define i32 @arg_max(ptr nocapture noundef readonly %scores, ptr nocapture noundef writeonly %label) nounwind {
entry:
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.body
  store i32 %spec.select, ptr %label, align 4
  ret i32 0

for.body:                                         ; preds = %entry, %for.body
  %i.011 = phi i32 [ 1, %entry ], [ %inc, %for.body ]
  %best.010 = phi i32 [ 0, %entry ], [ %spec.select, %for.body ]
  %arrayidx = getelementptr inbounds i32, ptr %scores, i32 %i.011
  %0 = load i32, ptr %arrayidx, align 4
  %arrayidx1 = getelementptr inbounds i32, ptr %scores, i32 %best.010
  %1 = load i32, ptr %arrayidx1, align 4
  %cmp2 = icmp sgt i32 %0, %1
  %spec.select = select i1 %cmp2, i32 %i.011, i32 %best.010
  %inc = add nuw nsw i32 %i.011, 1
  %exitcond.not = icmp eq i32 %inc, 10
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body
}
