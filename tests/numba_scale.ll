; SPDX-License-Identifier: Apache-2.0
; The output of the program in docs/compilers/numba.md with numba 0.68, joined to fewer lines.
source_filename = "<string>"
@_ZN08NumbaEnv8__main__11numba_scaleB2v1B52c8tJTIeFIjxB2IKSgI4CrvQClUYkACQB1EiFSRRB9GgCAA_3d_3dE7int8_2a7int8_2aii = common local_unnamed_addr global ptr null
define noundef i32 @_ZN8__main__11numba_scaleB2v1B52c8tJTIeFIjxB2IKSgI4CrvQClUYkACQB1EiFSRRB9GgCAA_3d_3dE7int8_2a7int8_2aii(ptr noalias writeonly captures(none) %retptr, ptr noalias readnone captures(none) %excinfo, ptr readonly captures(none) %arg.x, ptr writeonly captures(none) %arg.y, i32 %arg.count, i32 %arg.factor) local_unnamed_addr #0 {
entry: %.9550.not = icmp slt i32 %arg.count, 1 br i1 %.9550.not, label %B104, label %B34.if.lr.ph B34.if.lr.ph:
%.143 = sext i32 %arg.factor to i64 %wide.trip.count = zext nneg i32 %arg.count to i64 %0 = icmp eq i32 %arg.count, 1
br i1 %0, label %B34.if.epil.preheader, label %B34.if.lr.ph.new B34.if.lr.ph.new:
%unroll_iter = and i64 %wide.trip.count, 2147483646 br label %B34.if B104.loopexit.unr-lcssa:
%1 = and i64 %wide.trip.count, 1 %lcmp.mod.not = icmp eq i64 %1, 0
br i1 %lcmp.mod.not, label %B104, label %B34.if.epil.preheader B34.if.epil.preheader:
%indvars.iv.epil.init = phi i64 [ 0, %B34.if.lr.ph ], [ %indvars.iv.next.1, %B104.loopexit.unr-lcssa ]
%.139.epil = getelementptr i8, ptr %arg.x, i64 %indvars.iv.epil.init %.140.epil = load i8, ptr %.139.epil, align 1
%.142.epil = sext i8 %.140.epil to i64 %.144.epil = mul nsw i64 %.142.epil, %.143
%2 = tail call i64 @llvm.smax.i64(i64 %.144.epil, i64 -128)
%"$phi94.1.3.1.epil" = tail call i64 @llvm.smin.i64(i64 %2, i64 127)
%.175.epil = trunc nsw i64 %"$phi94.1.3.1.epil" to i8
%.176.epil = getelementptr i8, ptr %arg.y, i64 %indvars.iv.epil.init store i8 %.175.epil, ptr %.176.epil, align 1
br label %B104 B104: store i32 0, ptr %retptr, align 4 ret i32 0 B34.if:
%indvars.iv = phi i64 [ 0, %B34.if.lr.ph.new ], [ %indvars.iv.next.1, %B34.if ]
%sunkaddr = getelementptr i8, ptr %arg.x, i64 %indvars.iv %.140 = load i8, ptr %sunkaddr, align 1
%.142 = sext i8 %.140 to i64 %.144 = mul nsw i64 %.142, %.143 %3 = tail call i64 @llvm.smax.i64(i64 %.144, i64 -128)
%"$phi94.1.3.1" = tail call i64 @llvm.smin.i64(i64 %3, i64 127) %.175 = trunc nsw i64 %"$phi94.1.3.1" to i8
%sunkaddr9 = getelementptr i8, ptr %arg.y, i64 %indvars.iv store i8 %.175, ptr %sunkaddr9, align 1
%indvars.iv.next.1 = add nuw i64 %indvars.iv, 2 %sunkaddr10 = getelementptr i8, ptr %arg.x, i64 %indvars.iv
%sunkaddr11 = getelementptr i8, ptr %sunkaddr10, i64 1 %.140.1 = load i8, ptr %sunkaddr11, align 1
%.142.1 = sext i8 %.140.1 to i64 %.144.1 = mul nsw i64 %.142.1, %.143
%4 = tail call i64 @llvm.smax.i64(i64 %.144.1, i64 -128)
%"$phi94.1.3.1.1" = tail call i64 @llvm.smin.i64(i64 %4, i64 127) %.175.1 = trunc nsw i64 %"$phi94.1.3.1.1" to i8
%sunkaddr12 = getelementptr i8, ptr %arg.y, i64 %indvars.iv %sunkaddr13 = getelementptr i8, ptr %sunkaddr12, i64 1
store i8 %.175.1, ptr %sunkaddr13, align 1 %niter.ncmp.1 = icmp eq i64 %unroll_iter, %indvars.iv.next.1
br i1 %niter.ncmp.1, label %B104.loopexit.unr-lcssa, label %B34.if } declare i64 @llvm.smax.i64(i64, i64) #1
declare i64 @llvm.smin.i64(i64, i64) #1
define i32 @numba_scale(ptr readonly captures(none) %.1, ptr writeonly captures(none) %.2, i32 %.3, i32 %.4) local_unnamed_addr #0 {
entry: %.6 = alloca i32, align 4 store i32 0, ptr %.6, align 4
%.10 = call i32 @_ZN8__main__11numba_scaleB2v1B52c8tJTIeFIjxB2IKSgI4CrvQClUYkACQB1EiFSRRB9GgCAA_3d_3dE7int8_2a7int8_2aii(ptr nonnull %.6, ptr nonnull poison, ptr %.1, ptr %.2, i32 %.3, i32 %.4) #3
%.20 = load i32, ptr %.6, align 4 ret i32 %.20 } declare void @llvm.assume(i1 noundef) #2
attributes #0 = { nofree norecurse nosync nounwind memory(argmem: readwrite) }
attributes #1 = { mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write) }
attributes #3 = { noinline }
