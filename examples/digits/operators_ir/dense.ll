; SPDX-License-Identifier: Apache-2.0
; operators/dense.c as LLVM IR for any target: clang -O1 -emit-llvm, without triple, data layout and CPU.

define i32 @dense(ptr nocapture noundef readonly %pooled, ptr nocapture noundef readonly %weight, ptr nocapture noundef readonly %bias, ptr nocapture noundef writeonly %scores) nounwind {
entry:
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.cond.cleanup3
  ret i32 0

for.body:                                         ; preds = %entry, %for.cond.cleanup3
  %output.026 = phi i32 [ 0, %entry ], [ %inc10, %for.cond.cleanup3 ]
  %weight.addr.025 = phi ptr [ %weight, %entry ], [ %add.ptr, %for.cond.cleanup3 ]
  %arrayidx = getelementptr inbounds i32, ptr %bias, i32 %output.026
  %0 = load i32, ptr %arrayidx, align 4
  br label %for.body4

for.cond.cleanup3:                                ; preds = %for.body4
  %arrayidx8 = getelementptr inbounds i32, ptr %scores, i32 %output.026
  store i32 %add, ptr %arrayidx8, align 4
  %add.ptr = getelementptr inbounds i8, ptr %weight.addr.025, i32 128
  %inc10 = add nuw nsw i32 %output.026, 1
  %exitcond27.not = icmp eq i32 %inc10, 10
  br i1 %exitcond27.not, label %for.cond.cleanup, label %for.body

for.body4:                                        ; preds = %for.body, %for.body4
  %i.024 = phi i32 [ 0, %for.body ], [ %inc, %for.body4 ]
  %sum.023 = phi i32 [ %0, %for.body ], [ %add, %for.body4 ]
  %arrayidx5 = getelementptr inbounds i8, ptr %pooled, i32 %i.024
  %1 = load i8, ptr %arrayidx5, align 1
  %conv = sext i8 %1 to i32
  %arrayidx6 = getelementptr inbounds i8, ptr %weight.addr.025, i32 %i.024
  %2 = load i8, ptr %arrayidx6, align 1
  %conv7 = sext i8 %2 to i32
  %mul = mul nsw i32 %conv7, %conv
  %add = add nsw i32 %mul, %sum.023
  %inc = add nuw nsw i32 %i.024, 1
  %exitcond.not = icmp eq i32 %inc, 128
  br i1 %exitcond.not, label %for.cond.cleanup3, label %for.body4
}
