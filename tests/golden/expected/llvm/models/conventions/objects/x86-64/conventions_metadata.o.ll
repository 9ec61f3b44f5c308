%opwest_quantization = type { ptr, ptr, i32, i32, i32 }
%opwest_tensor = type { ptr, ptr, ptr, i32, i8, i8, i8, i8 }
%opwest_operator = type { ptr, ptr, ptr, i16, i16 }
%opwest_step = type { i16, i16 }
%opwest_pool = type { ptr, i32, i32 }
%opwest_program = type { ptr, ptr, i32 }
%opwest_device = type { ptr, ptr, ptr, i32, i32, i16, i16, i16, i16 }
%opwest_device_use = type { ptr, i32 }
%opwest_device_set = type { ptr, ptr, ptr, ptr, i32, i32 }
%opwest_model = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, i32, i16, i16, i16, i16, i16, i16, i16, i16 }
%opwest_build = type { ptr, ptr, ptr, i16, i8, i8, i8 }
%opwest_constant = type { %opwest_tensor, ptr }
%opwest_buffer = type { %opwest_tensor, i32, i16, i16, i16, i8 }
%opwest_region = type { ptr, ptr }
%opwest_pool_place = type { ptr, ptr, i32, i16, i16, i32 }
%opwest_binding = type { i16, i16 }
%opwest_step_bindings = type { ptr, i32 }
%opwest_view = type { %opwest_tensor, %opwest_binding, i32 }
%opwest_details = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i16, i16, i16, i16, i16, i16, i32 }
%opwest_requirement = type { ptr, ptr, ptr, ptr }
%opwest_entry = type { ptr, ptr, ptr }
%opwest_registry = type { ptr, ptr, i32, i32, i32 }
%opwest_point = type { ptr, i16, i16, i32 }
%opwest_state_tensor = type { ptr, i32, i32, i32, i16, i16, %opwest_binding }
%opwest_state = type { ptr, i32, i32, i32, i32 }
%opwest_measure = type { i64, i64, i64, i64, i64, i32, i32 }
%opwest_value = type { i64, i64, i8, i8 }
%opwest_status = type { i32, i16, i8, i8, i16 }
%opwest_launch = type { ptr, ptr, i32, i16, i16 }
%opwest_slot = type { ptr, %opwest_launch, i64, i32, i32, i32, i16, i16, i16, i16, i8, i8, i8, i8 }
%opwest_tvm_workspace = type { ptr, ptr, ptr, i32, i32, i32, i32 }
%DLDevice = type { i32, i32 }
%DLDataType = type { i8, i8, i16 }
%DLTensor = type { ptr, %DLDevice, i32, %DLDataType, ptr, ptr, i64 }
%TVMFFIAny = type { i32, i32, i64 }
%halide_type_t = type { i8, i8, i16 }
%halide_dimension_t = type { i32, i32, i32, i32 }
%halide_buffer_t = type { i64, ptr, ptr, i64, %halide_type_t, i32, ptr, ptr }
%opwest_memref_0 = type { ptr, ptr, i64 }
%opwest_memref_1 = type { ptr, ptr, i64, [1 x i64], [1 x i64] }
%opwest_memref_2 = type { ptr, ptr, i64, [2 x i64], [2 x i64] }
%opwest_memref_3 = type { ptr, ptr, i64, [3 x i64], [3 x i64] }
%opwest_memref_4 = type { ptr, ptr, i64, [4 x i64], [4 x i64] }
%opwest_memref_5 = type { ptr, ptr, i64, [5 x i64], [5 x i64] }
%opwest_memref_6 = type { ptr, ptr, i64, [6 x i64], [6 x i64] }
%opwest_memref_7 = type { ptr, ptr, i64, [7 x i64], [7 x i64] }
%opwest_memref_8 = type { ptr, ptr, i64, [8 x i64], [8 x i64] }
%opwest_memref_9 = type { ptr, ptr, i64, [9 x i64], [9 x i64] }
%opwest_memref_10 = type { ptr, ptr, i64, [10 x i64], [10 x i64] }
%opwest_memref_11 = type { ptr, ptr, i64, [11 x i64], [11 x i64] }
%opwest_memref_12 = type { ptr, ptr, i64, [12 x i64], [12 x i64] }
%opwest_memref_13 = type { ptr, ptr, i64, [13 x i64], [13 x i64] }
%opwest_memref_14 = type { ptr, ptr, i64, [14 x i64], [14 x i64] }
%opwest_memref_15 = type { ptr, ptr, i64, [15 x i64], [15 x i64] }
%opwest_memref_16 = type { ptr, ptr, i64, [16 x i64], [16 x i64] }
%conventions_workspace = type { ptr, %opwest_status, i8, i64, [2 x %opwest_slot] }
%conventions_workspace_profiled = type { ptr, %opwest_status, i8, i64, [2 x %opwest_slot], [0 x %opwest_measure] }
declare signext i32 @opwest_status_failed(ptr, ptr, i16 zeroext, i32 signext)
declare signext i32 @opwest_status_already()
declare signext i32 @opwest_status_invalid(ptr, i8 zeroext, i16 zeroext)
declare signext i32 @opwest_status_unreached(ptr, i8 zeroext, i16 zeroext)
declare extern_weak void @opwest_profile_begin(ptr, ptr, i32 signext)
declare extern_weak void @opwest_profile_end(ptr, ptr, i32 signext)
declare zeroext i1 @opwest_port_take(ptr)
declare void @opwest_port_give(ptr)
declare signext i32 @opwest_buffers_overlap(ptr, ptr, ptr, ptr)
declare signext i32 @opwest_status_hook_failed(ptr, ptr, ptr, i32 signext, i8 zeroext, i16 zeroext, i32 signext)
declare signext i32 @opwest_status_cancelled(ptr, i16 zeroext)
declare signext i32 @opwest_devices_activate(ptr, ptr, ptr)
declare signext i32 @opwest_devices_deactivate(ptr, ptr, ptr)
declare signext i32 @opwest_devices_acquire(ptr, ptr, ptr, i16 zeroext)
declare signext i32 @opwest_devices_release(ptr, ptr, ptr, i32 signext)
declare signext i32 @opwest_devices_prepare(ptr, ptr, ptr, i32 signext, i16 zeroext)
declare zeroext i1 @opwest_devices_again(ptr, ptr, ptr, i32 signext, i32 signext)
declare void @opwest_devices_launched(ptr, i32 signext)
declare signext i32 @opwest_devices_sync(ptr, ptr, ptr, i32 signext, i32 signext)
declare void @opwest_devices_begin(ptr, ptr)
declare void @opwest_devices_cancel(ptr, ptr)
declare zeroext i1 @opwest_devices_abandon(ptr, ptr)
declare signext i32 @opwest_call_on_device(ptr, ptr, ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare signext i32 @opwest_halide_code(i32 signext)
declare signext i32 @opwest_tvm_code(i32 signext)
declare void @opwest_tvm_enter(ptr, ptr, i32 signext, i32 signext)
declare signext i32 @opwest_tvm_leave(ptr, i32 signext)
declare signext i32 @conventions____tvm_ffi_add(ptr, ptr, i32 signext, ptr)
declare signext i32 @conventions____tvm_ffi_launch(ptr, ptr, i32 signext, ptr)
declare signext i32 @conventions____tvm_ffi_mix(ptr, ptr, i32 signext, ptr)
declare signext i32 @conventions___mlir_ciface_shift(ptr, ptr)
declare i64 @conventions___mlir_ciface_sum(ptr)
declare void @conventions___mlir_ciface_turn(ptr, i8 signext, ptr)
declare signext i32 @conventions__blur(ptr, i8 zeroext, double, ptr, ptr, ptr, ptr)
declare signext i32 @conventions__cross(ptr, ptr, ptr, ptr, i8 signext)
declare zeroext i8 @conventions__label(ptr, i16 signext)
declare signext i32 @conventions__limited(ptr, i32 signext, ptr)
declare double @conventions__mean(ptr)
declare void @conventions__negate(ptr)
declare signext i32 @conventions__total(ptr, ptr)
declare signext i32 @conventions__tvmgen_conventions_gather(ptr, ptr, i32 signext, ptr, ptr, ptr)
declare signext i32 @conventions__tvmgen_conventions_kinds(ptr, ptr, i32 signext, ptr, ptr, ptr)
declare signext i32 @conventions__tvmgen_conventions_launch(ptr, ptr, i32 signext, ptr, ptr, ptr)
declare signext i32 @conventions__tvmgen_conventions_move(ptr, ptr, i32 signext, ptr, ptr, ptr)
declare signext i32 @conventions__tvmgen_conventions_scale(ptr, ptr, i32 signext, ptr, ptr, ptr)
declare signext i32 @conventions__tvmgen_conventions_smooth(ptr, ptr, i32 signext, ptr, ptr, ptr)
@conventions_run_string_0 = private constant [12 x i8] c"conventions\00", section ".rodata.conventions_run_string_0", align 1
@conventions_constant_table = constant [24 x i8] c"\05\00\00\00\03\00\00\00\00\00\00\00\01\00\00\00\04\00\00\00\02\00\00\00", align 64
@conventions_run_string_1 = private constant [4 x i8] c"npu\00", section ".rodata.conventions_run_string_1", align 1
@conventions_run_string_2 = private constant [4 x i8] c"dma\00", section ".rodata.conventions_run_string_2", align 1
@conventions_device_table = constant [2 x %opwest_device] [
  %opwest_device { ptr @conventions_run_string_1, ptr null, ptr null, i32 100, i32 -1, i16 7, i16 9, i16 0, i16 1 },
  %opwest_device { ptr @conventions_run_string_2, ptr null, ptr null, i32 -1, i32 -1, i16 -1, i16 0, i16 0, i16 0 }
]
@device_uses = private unnamed_addr constant [1 x %opwest_device_use] [
  %opwest_device_use { ptr null, i32 0 }
]
@conventions_device_set = constant %opwest_device_set { ptr @conventions_run_string_0, ptr @conventions_device_table, ptr @device_uses, ptr null, i32 2, i32 1 }
define internal signext i32 @open_workspace(ptr %workspace, ptr %devices) {
entry:
  %status.at = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 1
  %slots = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 4
  %null.devices = icmp eq ptr %devices, null
  br i1 %null.devices, label %invalid, label %next1
next1:
  %opened.at = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 2
  %opened = load i8, ptr %opened.at
  %is.open = icmp ne i8 %opened, 0
  br i1 %is.open, label %already, label %next2
next2:
  store %opwest_status { i32 0, i16 -1, i8 0, i8 -1, i16 -1 }, ptr %status.at
  %pool.at.sram = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 0
  %pool.sram = load ptr, ptr %pool.at.sram
  %pool.sram.null = icmp eq ptr %pool.sram, null
  br i1 %pool.sram.null, label %invalid, label %next3
next3:
  %pool.sram.address = ptrtoint ptr %pool.sram to i64
  %pool.sram.rest = and i64 %pool.sram.address, 63
  %pool.sram.off = icmp ne i64 %pool.sram.rest, 0
  br i1 %pool.sram.off, label %invalid, label %next4
next4:
  %overlap.pool.0.0.a = ptrtoint ptr %pool.sram to i64
  %overlap.pool.0.0.b = ptrtoint ptr %workspace to i64
  %overlap.pool.0.0.apart = sub i64 %overlap.pool.0.0.a, %overlap.pool.0.0.b
  %overlap.pool.0.0.less = sub i64 512, 1
  %overlap.pool.0.0.shifted = add i64 %overlap.pool.0.0.apart, %overlap.pool.0.0.less
  %overlap.pool.0.0.both = add i64 %overlap.pool.0.0.less, ptrtoint (ptr getelementptr (%conventions_workspace, ptr null, i32 1) to i64)
  %overlap.pool.0.0 = icmp ult i64 %overlap.pool.0.0.shifted, %overlap.pool.0.0.both
  br i1 %overlap.pool.0.0, label %invalid, label %next5
next5:
  %device.npu.at = getelementptr ptr, ptr %devices, i32 0
  %device.npu = load ptr, ptr %device.npu.at
  %slot.0 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 0
  store ptr %device.npu, ptr %slot.0
  %device.dma.at = getelementptr ptr, ptr %devices, i32 1
  %device.dma = load ptr, ptr %device.dma.at
  %slot.1 = getelementptr %opwest_slot, ptr %slots, i32 1, i32 0
  store ptr %device.dma, ptr %slot.1
  %activated = call signext i32 @opwest_devices_activate(ptr @conventions_device_set, ptr %slots, ptr %status.at)
  %is.inactive = icmp ne i32 %activated, 0
  br i1 %is.inactive, label %inactive, label %next6
next6:
  store i8 1, ptr %opened.at
  ret i32 0
inactive:
  ret i32 %activated
already:
  %already.code = tail call signext i32 @opwest_status_already()
  ret i32 %already.code
invalid:
  %invalid.kind = phi i8 [ 11, %entry ], [ 10, %next2 ], [ 10, %next3 ], [ 10, %next4 ]
  %invalid.index = phi i16 [ -1, %entry ], [ 0, %next2 ], [ 0, %next3 ], [ 0, %next4 ]
  %invalid.code = tail call signext i32 @opwest_status_invalid(ptr %status.at, i8 zeroext %invalid.kind, i16 zeroext %invalid.index)
  ret i32 %invalid.code
}
define signext i32 @conventions_open(ptr %workspace, ptr %devices) {
entry:
  %null.workspace = icmp eq ptr %workspace, null
  br i1 %null.workspace, label %unset, label %next1
next1:
  %running = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 3
  %is.alone = call zeroext i1 @opwest_port_take(ptr %running)
  br i1 %is.alone, label %alone, label %busy
alone:
  %code = call signext i32 @open_workspace(ptr %workspace, ptr %devices)
  call void @opwest_port_give(ptr %running)
  ret i32 %code
unset:
  ret i32 -22
busy:
  ret i32 -16
}
define internal signext i32 @close_workspace(ptr %workspace, ptr %devices) {
entry:
  %status.at = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 1
  %slots = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 4
  %null.devices = icmp eq ptr %devices, null
  br i1 %null.devices, label %invalid, label %next1
next1:
  %opened.at = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 2
  %opened = load i8, ptr %opened.at
  %is.closed = icmp eq i8 %opened, 0
  br i1 %is.closed, label %already, label %next2
next2:
  store i8 0, ptr %opened.at
  store %opwest_status { i32 0, i16 -1, i8 0, i8 -1, i16 -1 }, ptr %status.at
  %closed = tail call signext i32 @opwest_devices_deactivate(ptr @conventions_device_set, ptr %slots, ptr %status.at)
  ret i32 %closed
already:
  %already.code = tail call signext i32 @opwest_status_already()
  ret i32 %already.code
invalid:
  %invalid.kind = phi i8 [ 11, %entry ]
  %invalid.index = phi i16 [ -1, %entry ]
  %invalid.code = tail call signext i32 @opwest_status_invalid(ptr %status.at, i8 zeroext %invalid.kind, i16 zeroext %invalid.index)
  ret i32 %invalid.code
}
define signext i32 @conventions_close(ptr %workspace, ptr %devices) {
entry:
  %null.workspace = icmp eq ptr %workspace, null
  br i1 %null.workspace, label %unset, label %next1
next1:
  %running = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 3
  %is.alone = call zeroext i1 @opwest_port_take(ptr %running)
  br i1 %is.alone, label %alone, label %busy
alone:
  %code = call signext i32 @close_workspace(ptr %workspace, ptr %devices)
  call void @opwest_port_give(ptr %running)
  ret i32 %code
unset:
  ret i32 -22
busy:
  ret i32 -16
}
define internal signext i32 @abandoned(i32 signext %rc, ptr %workspace) noinline cold {
  %slots = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 4
  %opened.at = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 2
  %open = call zeroext i1 @opwest_devices_abandon(ptr @conventions_device_set, ptr %slots)
  %open.byte = zext i1 %open to i8
  store i8 %open.byte, ptr %opened.at
  ret i32 %rc
}
define signext i32 @conventions_cancel(ptr %workspace) {
entry:
  %null.workspace = icmp eq ptr %workspace, null
  br i1 %null.workspace, label %unset, label %next1
next1:
  %slots = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 4
  call void @opwest_devices_cancel(ptr @conventions_device_set, ptr %slots)
  ret i32 0
unset:
  ret i32 -22
}
define internal signext i32 @run_workspace(ptr %inputs, ptr %outputs, ptr %workspace, ptr %devices) {
entry:
  %status.at = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 1
  %slots = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 4
  %null.inputs = icmp eq ptr %inputs, null
  br i1 %null.inputs, label %invalid, label %next1
next1:
  %null.outputs = icmp eq ptr %outputs, null
  br i1 %null.outputs, label %invalid, label %next2
next2:
  %null.devices = icmp eq ptr %devices, null
  br i1 %null.devices, label %invalid, label %next3
next3:
  store %opwest_status { i32 0, i16 -1, i8 0, i8 -1, i16 -1 }, ptr %status.at
  %inputs.image.at = getelementptr ptr, ptr %inputs, i32 0
  %inputs.image = load ptr, ptr %inputs.image.at
  %inputs.image.null = icmp eq ptr %inputs.image, null
  br i1 %inputs.image.null, label %invalid, label %next4
next4:
  %inputs.image.address = ptrtoint ptr %inputs.image to i64
  %inputs.image.rest = and i64 %inputs.image.address, 15
  %inputs.image.off = icmp ne i64 %inputs.image.rest, 0
  br i1 %inputs.image.off, label %invalid, label %next5
next5:
  %inputs.a.at = getelementptr ptr, ptr %inputs, i32 1
  %inputs.a = load ptr, ptr %inputs.a.at
  %inputs.a.null = icmp eq ptr %inputs.a, null
  br i1 %inputs.a.null, label %invalid, label %next6
next6:
  %inputs.a.address = ptrtoint ptr %inputs.a to i64
  %inputs.a.rest = and i64 %inputs.a.address, 15
  %inputs.a.off = icmp ne i64 %inputs.a.rest, 0
  br i1 %inputs.a.off, label %invalid, label %next7
next7:
  %inputs.b.at = getelementptr ptr, ptr %inputs, i32 2
  %inputs.b = load ptr, ptr %inputs.b.at
  %inputs.b.null = icmp eq ptr %inputs.b, null
  br i1 %inputs.b.null, label %invalid, label %next8
next8:
  %inputs.b.address = ptrtoint ptr %inputs.b to i64
  %inputs.b.rest = and i64 %inputs.b.address, 15
  %inputs.b.off = icmp ne i64 %inputs.b.rest, 0
  br i1 %inputs.b.off, label %invalid, label %next9
next9:
  %inputs.c.at = getelementptr ptr, ptr %inputs, i32 3
  %inputs.c = load ptr, ptr %inputs.c.at
  %inputs.c.null = icmp eq ptr %inputs.c, null
  br i1 %inputs.c.null, label %invalid, label %next10
next10:
  %inputs.c.address = ptrtoint ptr %inputs.c to i64
  %inputs.c.rest = and i64 %inputs.c.address, 15
  %inputs.c.off = icmp ne i64 %inputs.c.rest, 0
  br i1 %inputs.c.off, label %invalid, label %next11
next11:
  %inputs.d.at = getelementptr ptr, ptr %inputs, i32 4
  %inputs.d = load ptr, ptr %inputs.d.at
  %inputs.d.null = icmp eq ptr %inputs.d, null
  br i1 %inputs.d.null, label %invalid, label %next12
next12:
  %inputs.d.address = ptrtoint ptr %inputs.d to i64
  %inputs.d.rest = and i64 %inputs.d.address, 63
  %inputs.d.off = icmp ne i64 %inputs.d.rest, 0
  br i1 %inputs.d.off, label %invalid, label %next13
next13:
  %outputs.scores.at = getelementptr ptr, ptr %outputs, i32 0
  %outputs.scores = load ptr, ptr %outputs.scores.at
  %outputs.scores.null = icmp eq ptr %outputs.scores, null
  br i1 %outputs.scores.null, label %invalid, label %next14
next14:
  %outputs.scores.address = ptrtoint ptr %outputs.scores to i64
  %outputs.scores.rest = and i64 %outputs.scores.address, 63
  %outputs.scores.off = icmp ne i64 %outputs.scores.rest, 0
  br i1 %outputs.scores.off, label %invalid, label %next15
next15:
  %outputs.sum.at = getelementptr ptr, ptr %outputs, i32 1
  %outputs.sum = load ptr, ptr %outputs.sum.at
  %outputs.sum.null = icmp eq ptr %outputs.sum, null
  br i1 %outputs.sum.null, label %invalid, label %next16
next16:
  %outputs.sum.address = ptrtoint ptr %outputs.sum to i64
  %outputs.sum.rest = and i64 %outputs.sum.address, 3
  %outputs.sum.off = icmp ne i64 %outputs.sum.rest, 0
  br i1 %outputs.sum.off, label %invalid, label %next17
next17:
  %outputs.seen.at = getelementptr ptr, ptr %outputs, i32 2
  %outputs.seen = load ptr, ptr %outputs.seen.at
  %outputs.seen.null = icmp eq ptr %outputs.seen, null
  br i1 %outputs.seen.null, label %invalid, label %next18
next18:
  %outputs.seen.address = ptrtoint ptr %outputs.seen to i64
  %outputs.seen.rest = and i64 %outputs.seen.address, 15
  %outputs.seen.off = icmp ne i64 %outputs.seen.rest, 0
  br i1 %outputs.seen.off, label %invalid, label %next19
next19:
  %outputs.label.at = getelementptr ptr, ptr %outputs, i32 3
  %outputs.label = load ptr, ptr %outputs.label.at
  %outputs.label.null = icmp eq ptr %outputs.label, null
  br i1 %outputs.label.null, label %invalid, label %next20
next20:
  %outputs.mean.at = getelementptr ptr, ptr %outputs, i32 4
  %outputs.mean = load ptr, ptr %outputs.mean.at
  %outputs.mean.null = icmp eq ptr %outputs.mean, null
  br i1 %outputs.mean.null, label %invalid, label %next21
next21:
  %outputs.mean.address = ptrtoint ptr %outputs.mean to i64
  %outputs.mean.rest = and i64 %outputs.mean.address, 7
  %outputs.mean.off = icmp ne i64 %outputs.mean.rest, 0
  br i1 %outputs.mean.off, label %invalid, label %next22
next22:
  %outputs.turned.at = getelementptr ptr, ptr %outputs, i32 5
  %outputs.turned = load ptr, ptr %outputs.turned.at
  %outputs.turned.null = icmp eq ptr %outputs.turned, null
  br i1 %outputs.turned.null, label %invalid, label %next23
next23:
  %outputs.turned.address = ptrtoint ptr %outputs.turned to i64
  %outputs.turned.rest = and i64 %outputs.turned.address, 3
  %outputs.turned.off = icmp ne i64 %outputs.turned.rest, 0
  br i1 %outputs.turned.off, label %invalid, label %next24
next24:
  %outputs.total.at = getelementptr ptr, ptr %outputs, i32 6
  %outputs.total = load ptr, ptr %outputs.total.at
  %outputs.total.null = icmp eq ptr %outputs.total, null
  br i1 %outputs.total.null, label %invalid, label %next25
next25:
  %outputs.total.address = ptrtoint ptr %outputs.total to i64
  %outputs.total.rest = and i64 %outputs.total.address, 7
  %outputs.total.off = icmp ne i64 %outputs.total.rest, 0
  br i1 %outputs.total.off, label %invalid, label %next26
next26:
  %outputs.shifted.at = getelementptr ptr, ptr %outputs, i32 7
  %outputs.shifted = load ptr, ptr %outputs.shifted.at
  %outputs.shifted.null = icmp eq ptr %outputs.shifted, null
  br i1 %outputs.shifted.null, label %invalid, label %next27
next27:
  %outputs.shifted.address = ptrtoint ptr %outputs.shifted to i64
  %outputs.shifted.rest = and i64 %outputs.shifted.address, 7
  %outputs.shifted.off = icmp ne i64 %outputs.shifted.rest, 0
  br i1 %outputs.shifted.off, label %invalid, label %next28
next28:
  %outputs.crossed.at = getelementptr ptr, ptr %outputs, i32 8
  %outputs.crossed = load ptr, ptr %outputs.crossed.at
  %outputs.crossed.null = icmp eq ptr %outputs.crossed, null
  br i1 %outputs.crossed.null, label %invalid, label %next29
next29:
  %outputs.crossed.address = ptrtoint ptr %outputs.crossed to i64
  %outputs.crossed.rest = and i64 %outputs.crossed.address, 7
  %outputs.crossed.off = icmp ne i64 %outputs.crossed.rest, 0
  br i1 %outputs.crossed.off, label %invalid, label %next30
next30:
  %opened.at = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 2
  %opened = load i8, ptr %opened.at
  %is.closed = icmp eq i8 %opened, 0
  br i1 %is.closed, label %closed, label %next31
next31:
  %pool.at.sram = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 0
  %pool.sram = load ptr, ptr %pool.at.sram
  %overlap = call signext i32 @opwest_buffers_overlap(ptr @buffer_sizes, ptr %inputs, ptr %outputs, ptr %workspace)
  %is.overlapping = icmp ne i32 %overlap, 0
  br i1 %is.overlapping, label %overlapping, label %next32
next32:
  %device.npu.at = getelementptr ptr, ptr %devices, i32 0
  %device.npu = load ptr, ptr %device.npu.at
  %slot.0 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 0
  %kept.0 = load ptr, ptr %slot.0
  %other.0 = icmp ne ptr %kept.0, %device.npu
  br i1 %other.0, label %invalid, label %next33
next33:
  %device.dma.at = getelementptr ptr, ptr %devices, i32 1
  %device.dma = load ptr, ptr %device.dma.at
  %slot.1 = getelementptr %opwest_slot, ptr %slots, i32 1, i32 0
  %kept.1 = load ptr, ptr %slot.1
  %other.1 = icmp ne ptr %kept.1, %device.dma
  br i1 %other.1, label %invalid, label %next34
next34:
  call void @opwest_devices_begin(ptr @conventions_device_set, ptr %slots)
  %cancel.at.0 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.0 = load volatile i8, ptr %cancel.at.0, align 1
  %is.cancelled.0 = icmp ne i8 %cancel.0, 0
  br i1 %is.cancelled.0, label %cancelled, label %next35
next35:
  %at.0.5 = getelementptr i8, ptr %pool.sram, i32 192
  %status.0 = call signext i32 @conventions_bridge_scale(ptr %inputs.image, i8 signext -3, i64 9000000000, float 0x3FE0000000000000, i8 zeroext 1, ptr %at.0.5)
  %failed.0 = icmp ne i32 %status.0, 0
  br i1 %failed.0, label %failed, label %next36
next36:
  %cancel.at.1 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.1 = load volatile i8, ptr %cancel.at.1, align 1
  %is.cancelled.1 = icmp ne i8 %cancel.1, 0
  br i1 %is.cancelled.1, label %cancelled, label %next37
next37:
  %at.1.0 = getelementptr i8, ptr %pool.sram, i32 192
  %at.1.1 = getelementptr i8, ptr %pool.sram, i32 128
  %at.1.2 = getelementptr i8, ptr %pool.sram, i32 0
  %status.1 = call signext i32 @conventions_bridge_smooth(ptr %at.1.0, ptr %at.1.1, ptr %at.1.2)
  %failed.1 = icmp ne i32 %status.1, 0
  br i1 %failed.1, label %failed, label %next38
next38:
  %cancel.at.2 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.2 = load volatile i8, ptr %cancel.at.2, align 1
  %is.cancelled.2 = icmp ne i8 %cancel.2, 0
  br i1 %is.cancelled.2, label %cancelled, label %next39
next39:
  %at.2.1 = getelementptr i8, ptr %pool.sram, i32 128
  %at.2.2 = getelementptr i8, ptr %pool.sram, i32 0
  %at.2.3 = getelementptr i8, ptr %pool.sram, i32 64
  %status.2 = call signext i32 @conventions_bridge_gather(ptr @conventions_constant_table, ptr %at.2.1, ptr %at.2.2, ptr %at.2.3)
  %failed.2 = icmp ne i32 %status.2, 0
  br i1 %failed.2, label %failed, label %next40
next40:
  %cancel.at.3 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.3 = load volatile i8, ptr %cancel.at.3, align 1
  %is.cancelled.3 = icmp ne i8 %cancel.3, 0
  br i1 %is.cancelled.3, label %cancelled, label %next41
next41:
  %at.3.0 = getelementptr i8, ptr %pool.sram, i32 64
  call void @conventions__negate(ptr %at.3.0)
  %cancel.at.4 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.4 = load volatile i8, ptr %cancel.at.4, align 1
  %is.cancelled.4 = icmp ne i8 %cancel.4, 0
  br i1 %is.cancelled.4, label %cancelled, label %next42
next42:
  %at.4.0 = getelementptr i8, ptr %pool.sram, i32 64
  %at.4.1 = getelementptr i8, ptr %pool.sram, i32 0
  %status.4 = call signext i32 @conventions_bridge_move(ptr %at.4.0, ptr %at.4.1, ptr %device.dma)
  %failed.4 = icmp ne i32 %status.4, 0
  br i1 %failed.4, label %failed, label %next43
next43:
  %cancel.at.5 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.5 = load volatile i8, ptr %cancel.at.5, align 1
  %is.cancelled.5 = icmp ne i8 %cancel.5, 0
  br i1 %is.cancelled.5, label %cancelled, label %next44
next44:
  %status.5 = call signext i32 @conventions_bridge_kinds(ptr %inputs.a, ptr %inputs.b, ptr %inputs.c, ptr %inputs.d, ptr %outputs.seen)
  %failed.5 = icmp ne i32 %status.5, 0
  br i1 %failed.5, label %failed, label %next45
next45:
  %cancel.at.6 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.6 = load volatile i8, ptr %cancel.at.6, align 1
  %is.cancelled.6 = icmp ne i8 %cancel.6, 0
  br i1 %is.cancelled.6, label %cancelled, label %next46
next46:
  %at.6.0 = getelementptr i8, ptr %pool.sram, i32 0
  %at.6.1 = getelementptr i8, ptr %pool.sram, i32 128
  %at.6.2 = getelementptr i8, ptr %pool.sram, i32 320
  %status.6 = call signext i32 @conventions_bridge_add(ptr %at.6.0, ptr %at.6.1, ptr %at.6.2)
  %failed.6 = icmp ne i32 %status.6, 0
  br i1 %failed.6, label %failed, label %next47
next47:
  %acquired.7 = call signext i32 @opwest_devices_acquire(ptr @conventions_device_set, ptr %slots, ptr %status.at, i16 zeroext 7)
  %acquired.7.failed = icmp ne i32 %acquired.7, 0
  br i1 %acquired.7.failed, label %abandon, label %next48
next48:
  %prepared.7 = call signext i32 @opwest_devices_prepare(ptr @conventions_device_set, ptr %slots, ptr %status.at, i32 signext 0, i16 zeroext 7)
  %prepared.7.failed = icmp ne i32 %prepared.7, 0
  br i1 %prepared.7.failed, label %abandon, label %next49
next49:
  %at.7.0 = getelementptr i8, ptr %pool.sram, i32 320
  %at.7.2 = getelementptr i8, ptr %pool.sram, i32 384
  %at.7.3 = getelementptr i8, ptr %pool.sram, i32 0
  br label %call7
call7:
  %status.7 = call signext i32 @conventions_bridge_launch(ptr %at.7.0, i32 signext 3, ptr %at.7.2, ptr %at.7.3, ptr %device.npu)
  %status.7.bad = icmp ne i32 %status.7, 0
  br i1 %status.7.bad, label %again7, label %done7
again7:
  %status.7.again = call zeroext i1 @opwest_devices_again(ptr @conventions_device_set, ptr %slots, ptr %status.at, i32 signext 0, i32 signext %status.7)
  br i1 %status.7.again, label %call7, label %done7
done7:
  %failed.7 = icmp ne i32 %status.7, 0
  br i1 %failed.7, label %failed, label %next50
next50:
  call void @opwest_devices_launched(ptr %slots, i32 signext 0)
  %prepared.8 = call signext i32 @opwest_devices_prepare(ptr @conventions_device_set, ptr %slots, ptr %status.at, i32 signext 0, i16 zeroext 8)
  %prepared.8.failed = icmp ne i32 %prepared.8, 0
  br i1 %prepared.8.failed, label %abandon, label %next51
next51:
  %at.8.0 = getelementptr i8, ptr %pool.sram, i32 384
  %at.8.2 = getelementptr i8, ptr %pool.sram, i32 448
  %at.8.3 = getelementptr i8, ptr %pool.sram, i32 176
  br label %call8
call8:
  %status.8 = call signext i32 @conventions_bridge_launch_packed(ptr %at.8.0, i32 signext -1, ptr %at.8.2, ptr %at.8.3, ptr %device.npu)
  %status.8.bad = icmp ne i32 %status.8, 0
  br i1 %status.8.bad, label %again8, label %done8
again8:
  %status.8.again = call zeroext i1 @opwest_devices_again(ptr @conventions_device_set, ptr %slots, ptr %status.at, i32 signext 0, i32 signext %status.8)
  br i1 %status.8.again, label %call8, label %done8
done8:
  %failed.8 = icmp ne i32 %status.8, 0
  br i1 %failed.8, label %failed, label %next52
next52:
  call void @opwest_devices_launched(ptr %slots, i32 signext 0)
  %waited.10 = call signext i32 @opwest_devices_sync(ptr @conventions_device_set, ptr %slots, ptr %status.at, i32 signext 0, i32 signext 0)
  %lost.10 = icmp ne i32 %waited.10, 0
  br i1 %lost.10, label %abandon, label %next53
next53:
  %released.0 = call signext i32 @opwest_devices_release(ptr @conventions_device_set, ptr %slots, ptr %status.at, i32 signext 0)
  %released.0.failed = icmp ne i32 %released.0, 0
  br i1 %released.0.failed, label %abandon, label %next54
next54:
  %cancel.at.9 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.9 = load volatile i8, ptr %cancel.at.9, align 1
  %is.cancelled.9 = icmp ne i8 %cancel.9, 0
  br i1 %is.cancelled.9, label %cancelled, label %next55
next55:
  %at.9.0 = getelementptr i8, ptr %pool.sram, i32 448
  %at.9.7 = getelementptr i8, ptr %pool.sram, i32 0
  %status.9 = call signext i32 @conventions_bridge_mix(ptr %at.9.0, i16 zeroext 60000, double 0x3FD0000000000000, i8 zeroext 0, ptr @conventions_constant_table, ptr %inputs.d, ptr %outputs.scores, ptr %at.9.7)
  %failed.9 = icmp ne i32 %status.9, 0
  br i1 %failed.9, label %failed, label %next56
next56:
  %cancel.at.10 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.10 = load volatile i8, ptr %cancel.at.10, align 1
  %is.cancelled.10 = icmp ne i8 %cancel.10, 0
  br i1 %is.cancelled.10, label %cancelled, label %next57
next57:
  %at.10.2 = getelementptr i8, ptr %pool.sram, i32 0
  %status.10 = call signext i32 @conventions_bridge_total(ptr %outputs.scores, ptr %outputs.sum, ptr %at.10.2)
  %failed.10 = icmp ne i32 %status.10, 0
  br i1 %failed.10, label %failed, label %next58
next58:
  %cancel.at.11 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.11 = load volatile i8, ptr %cancel.at.11, align 1
  %is.cancelled.11 = icmp ne i8 %cancel.11, 0
  br i1 %is.cancelled.11, label %cancelled, label %next59
next59:
  call void @conventions_bridge_label(ptr %outputs.scores, i16 signext -300, ptr %outputs.label)
  %cancel.at.12 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.12 = load volatile i8, ptr %cancel.at.12, align 1
  %is.cancelled.12 = icmp ne i8 %cancel.12, 0
  br i1 %is.cancelled.12, label %cancelled, label %next60
next60:
  call void @conventions_bridge_mean(ptr %outputs.scores, ptr %outputs.mean)
  %cancel.at.13 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.13 = load volatile i8, ptr %cancel.at.13, align 1
  %is.cancelled.13 = icmp ne i8 %cancel.13, 0
  br i1 %is.cancelled.13, label %cancelled, label %next61
next61:
  %value.13.1 = load i8, ptr %outputs.label
  %value.13.2 = load double, ptr %outputs.mean
  %at.13.6 = getelementptr i8, ptr %pool.sram, i32 80
  %at.13.7 = getelementptr i8, ptr %pool.sram, i32 0
  %status.13 = call signext i32 @conventions_bridge_blur(ptr %outputs.scores, i8 zeroext %value.13.1, double %value.13.2, ptr %inputs.d, ptr %inputs.b, ptr %inputs.c, ptr %at.13.6, ptr %at.13.7)
  %failed.13 = icmp ne i32 %status.13, 0
  br i1 %failed.13, label %failed, label %next62
next62:
  %cancel.at.14 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.14 = load volatile i8, ptr %cancel.at.14, align 1
  %is.cancelled.14 = icmp ne i8 %cancel.14, 0
  br i1 %is.cancelled.14, label %cancelled, label %next63
next63:
  %at.14.0 = getelementptr i8, ptr %pool.sram, i32 80
  call void @conventions_bridge_turn(ptr %at.14.0, i8 signext -2, ptr %outputs.turned)
  %cancel.at.15 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.15 = load volatile i8, ptr %cancel.at.15, align 1
  %is.cancelled.15 = icmp ne i8 %cancel.15, 0
  br i1 %is.cancelled.15, label %cancelled, label %next64
next64:
  call void @conventions_bridge_sum(ptr %outputs.turned, ptr %outputs.total)
  %cancel.at.16 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.16 = load volatile i8, ptr %cancel.at.16, align 1
  %is.cancelled.16 = icmp ne i8 %cancel.16, 0
  br i1 %is.cancelled.16, label %cancelled, label %next65
next65:
  %status.16 = call signext i32 @conventions_bridge_shift(ptr %outputs.mean, ptr %outputs.shifted)
  %failed.16 = icmp ne i32 %status.16, 0
  br i1 %failed.16, label %failed, label %next66
next66:
  %cancel.at.17 = getelementptr %opwest_slot, ptr %slots, i32 0, i32 13
  %cancel.17 = load volatile i8, ptr %cancel.at.17, align 1
  %is.cancelled.17 = icmp ne i8 %cancel.17, 0
  br i1 %is.cancelled.17, label %cancelled, label %next67
next67:
  %at.17.3 = getelementptr i8, ptr %pool.sram, i32 48
  %at.17.5 = getelementptr i8, ptr %pool.sram, i32 0
  %status.17 = call signext i32 @conventions_bridge_cross(ptr %outputs.scores, ptr %outputs.turned, ptr @conventions_constant_table, ptr %at.17.3, ptr %outputs.crossed, ptr %at.17.5, i8 signext 3)
  %failed.17 = icmp ne i32 %status.17, 0
  br i1 %failed.17, label %failed, label %next68
next68:
  ret i32 0
overlapping:
  %overlap.high = lshr i32 %overlap, 16
  %overlap.kind = trunc i32 %overlap.high to i8
  %overlap.index = trunc i32 %overlap to i16
  %overlap.code = tail call signext i32 @opwest_status_invalid(ptr %status.at, i8 zeroext %overlap.kind, i16 zeroext %overlap.index)
  ret i32 %overlap.code
failed:
  %code = phi i32 [ %status.0, %next35 ], [ %status.1, %next37 ], [ %status.2, %next39 ], [ %status.4, %next42 ], [ %status.5, %next44 ], [ %status.6, %next46 ], [ %status.7, %done7 ], [ %status.8, %done8 ], [ %status.9, %next55 ], [ %status.10, %next57 ], [ %status.13, %next61 ], [ %status.16, %next65 ], [ %status.17, %next67 ]
  %step = phi i16 [ 0, %next35 ], [ 1, %next37 ], [ 2, %next39 ], [ 4, %next42 ], [ 5, %next44 ], [ 6, %next46 ], [ 7, %done7 ], [ 8, %done8 ], [ 9, %next55 ], [ 10, %next57 ], [ 13, %next61 ], [ 16, %next65 ], [ 17, %next67 ]
  %result = call signext i32 @opwest_status_failed(ptr %status.at, ptr @conventions_run_string_0, i16 zeroext %step, i32 signext %code)
  %result.end = tail call signext i32 @abandoned(i32 signext %result, ptr %workspace)
  ret i32 %result.end
cancelled:
  %cancel.step = phi i16 [ 0, %next34 ], [ 1, %next36 ], [ 2, %next38 ], [ 3, %next40 ], [ 4, %next41 ], [ 5, %next43 ], [ 6, %next45 ], [ 9, %next54 ], [ 10, %next56 ], [ 11, %next58 ], [ 12, %next59 ], [ 13, %next60 ], [ 14, %next62 ], [ 15, %next63 ], [ 16, %next64 ], [ 17, %next66 ]
  %cancel.code = call signext i32 @opwest_status_cancelled(ptr %status.at, i16 zeroext %cancel.step)
  %cancel.code.end = tail call signext i32 @abandoned(i32 signext %cancel.code, ptr %workspace)
  ret i32 %cancel.code.end
abandon:
  %lost.code = phi i32 [ %acquired.7, %next47 ], [ %prepared.7, %next48 ], [ %prepared.8, %next50 ], [ %waited.10, %next52 ], [ %released.0, %next53 ]
  %lost.code.end = tail call signext i32 @abandoned(i32 signext %lost.code, ptr %workspace)
  ret i32 %lost.code.end
invalid:
  %invalid.kind = phi i8 [ 8, %entry ], [ 9, %next1 ], [ 11, %next2 ], [ 8, %next3 ], [ 8, %next4 ], [ 8, %next5 ], [ 8, %next6 ], [ 8, %next7 ], [ 8, %next8 ], [ 8, %next9 ], [ 8, %next10 ], [ 8, %next11 ], [ 8, %next12 ], [ 9, %next13 ], [ 9, %next14 ], [ 9, %next15 ], [ 9, %next16 ], [ 9, %next17 ], [ 9, %next18 ], [ 9, %next19 ], [ 9, %next20 ], [ 9, %next21 ], [ 9, %next22 ], [ 9, %next23 ], [ 9, %next24 ], [ 9, %next25 ], [ 9, %next26 ], [ 9, %next27 ], [ 9, %next28 ], [ 9, %next29 ], [ 11, %next32 ], [ 11, %next33 ]
  %invalid.index = phi i16 [ -1, %entry ], [ -1, %next1 ], [ -1, %next2 ], [ 0, %next3 ], [ 0, %next4 ], [ 1, %next5 ], [ 1, %next6 ], [ 2, %next7 ], [ 2, %next8 ], [ 3, %next9 ], [ 3, %next10 ], [ 4, %next11 ], [ 4, %next12 ], [ 0, %next13 ], [ 0, %next14 ], [ 1, %next15 ], [ 1, %next16 ], [ 2, %next17 ], [ 2, %next18 ], [ 3, %next19 ], [ 4, %next20 ], [ 4, %next21 ], [ 5, %next22 ], [ 5, %next23 ], [ 6, %next24 ], [ 6, %next25 ], [ 7, %next26 ], [ 7, %next27 ], [ 8, %next28 ], [ 8, %next29 ], [ 0, %next32 ], [ 1, %next33 ]
  %invalid.code = tail call signext i32 @opwest_status_invalid(ptr %status.at, i8 zeroext %invalid.kind, i16 zeroext %invalid.index)
  ret i32 %invalid.code
closed:
  ret i32 -1
}
define signext i32 @conventions_run(ptr %inputs, ptr %outputs, ptr %workspace, ptr %devices) {
entry:
  %null.workspace = icmp eq ptr %workspace, null
  br i1 %null.workspace, label %unset, label %next1
next1:
  %running = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 3
  %is.alone = call zeroext i1 @opwest_port_take(ptr %running)
  br i1 %is.alone, label %alone, label %busy
alone:
  %code = call signext i32 @run_workspace(ptr %inputs, ptr %outputs, ptr %workspace, ptr %devices)
  call void @opwest_port_give(ptr %running)
  ret i32 %code
unset:
  ret i32 -22
busy:
  ret i32 -16
}
define internal signext i32 @run_profiled_workspace(ptr %inputs, ptr %outputs, ptr %workspace, ptr %devices) {
; @run_workspace with:
; @@ next3:
; +  %measures = getelementptr %conventions_workspace_profiled, ptr %workspace, i32 0, i32 5
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 0)
; @@
; -  %status.0 = call signext i32 @conventions_bridge_scale(ptr %inputs.image, i8 signext -3, i64 9000000000, float 0x3FE0000000000000, i8 zeroext 1, ptr %at.0.5)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 1)
; +  %status.0 = call signext i32 @conventions_bridge_scale(ptr %inputs.image, i8 signext -3, i64 9000000000, float 0x3FE0000000000000, i8 zeroext 1, ptr %at.0.5)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 1)
; @@
; -  %status.1 = call signext i32 @conventions_bridge_smooth(ptr %at.1.0, ptr %at.1.1, ptr %at.1.2)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 2)
; +  %status.1 = call signext i32 @conventions_bridge_smooth(ptr %at.1.0, ptr %at.1.1, ptr %at.1.2)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 2)
; @@
; -  %status.2 = call signext i32 @conventions_bridge_gather(ptr @conventions_constant_table, ptr %at.2.1, ptr %at.2.2, ptr %at.2.3)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 3)
; +  %status.2 = call signext i32 @conventions_bridge_gather(ptr @conventions_constant_table, ptr %at.2.1, ptr %at.2.2, ptr %at.2.3)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 3)
; @@
; -  call void @conventions__negate(ptr %at.3.0)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 4)
; +  call void @conventions__negate(ptr %at.3.0)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 4)
; @@
; -  %status.4 = call signext i32 @conventions_bridge_move(ptr %at.4.0, ptr %at.4.1, ptr %device.dma)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 5)
; +  %status.4 = call signext i32 @conventions_bridge_move(ptr %at.4.0, ptr %at.4.1, ptr %device.dma)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 5)
; @@
; -  %status.5 = call signext i32 @conventions_bridge_kinds(ptr %inputs.a, ptr %inputs.b, ptr %inputs.c, ptr %inputs.d, ptr %outputs.seen)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 6)
; +  %status.5 = call signext i32 @conventions_bridge_kinds(ptr %inputs.a, ptr %inputs.b, ptr %inputs.c, ptr %inputs.d, ptr %outputs.seen)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 6)
; @@
; -  %status.6 = call signext i32 @conventions_bridge_add(ptr %at.6.0, ptr %at.6.1, ptr %at.6.2)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 7)
; +  %status.6 = call signext i32 @conventions_bridge_add(ptr %at.6.0, ptr %at.6.1, ptr %at.6.2)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 7)
; @@   %at.7.3 = getelementptr i8, ptr %pool.sram, i32 0
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 8)
; @@ done7:
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 8)
; @@   %at.8.3 = getelementptr i8, ptr %pool.sram, i32 176
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 9)
; @@ done8:
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 9)
; @@
; -  %waited.10 = call signext i32 @opwest_devices_sync(ptr @conventions_device_set, ptr %slots, ptr %status.at, i32 signext 0, i32 signext 0)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 10)
; +  %waited.10 = call signext i32 @opwest_devices_sync(ptr @conventions_device_set, ptr %slots, ptr %status.at, i32 signext 0, i32 signext 0)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 10)
; @@
; -  %status.9 = call signext i32 @conventions_bridge_mix(ptr %at.9.0, i16 zeroext 60000, double 0x3FD0000000000000, i8 zeroext 0, ptr @conventions_constant_table, ptr %inputs.d, ptr %outputs.scores, ptr %at.9.7)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 11)
; +  %status.9 = call signext i32 @conventions_bridge_mix(ptr %at.9.0, i16 zeroext 60000, double 0x3FD0000000000000, i8 zeroext 0, ptr @conventions_constant_table, ptr %inputs.d, ptr %outputs.scores, ptr %at.9.7)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 11)
; @@
; -  %status.10 = call signext i32 @conventions_bridge_total(ptr %outputs.scores, ptr %outputs.sum, ptr %at.10.2)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 12)
; +  %status.10 = call signext i32 @conventions_bridge_total(ptr %outputs.scores, ptr %outputs.sum, ptr %at.10.2)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 12)
; @@
; -  call void @conventions_bridge_label(ptr %outputs.scores, i16 signext -300, ptr %outputs.label)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 13)
; +  call void @conventions_bridge_label(ptr %outputs.scores, i16 signext -300, ptr %outputs.label)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 13)
; @@
; -  call void @conventions_bridge_mean(ptr %outputs.scores, ptr %outputs.mean)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 14)
; +  call void @conventions_bridge_mean(ptr %outputs.scores, ptr %outputs.mean)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 14)
; @@
; -  %status.13 = call signext i32 @conventions_bridge_blur(ptr %outputs.scores, i8 zeroext %value.13.1, double %value.13.2, ptr %inputs.d, ptr %inputs.b, ptr %inputs.c, ptr %at.13.6, ptr %at.13.7)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 15)
; +  %status.13 = call signext i32 @conventions_bridge_blur(ptr %outputs.scores, i8 zeroext %value.13.1, double %value.13.2, ptr %inputs.d, ptr %inputs.b, ptr %inputs.c, ptr %at.13.6, ptr %at.13.7)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 15)
; @@
; -  call void @conventions_bridge_turn(ptr %at.14.0, i8 signext -2, ptr %outputs.turned)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 16)
; +  call void @conventions_bridge_turn(ptr %at.14.0, i8 signext -2, ptr %outputs.turned)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 16)
; @@
; -  call void @conventions_bridge_sum(ptr %outputs.turned, ptr %outputs.total)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 17)
; +  call void @conventions_bridge_sum(ptr %outputs.turned, ptr %outputs.total)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 17)
; @@
; -  %status.16 = call signext i32 @conventions_bridge_shift(ptr %outputs.mean, ptr %outputs.shifted)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 18)
; +  %status.16 = call signext i32 @conventions_bridge_shift(ptr %outputs.mean, ptr %outputs.shifted)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 18)
; @@
; -  %status.17 = call signext i32 @conventions_bridge_cross(ptr %outputs.scores, ptr %outputs.turned, ptr @conventions_constant_table, ptr %at.17.3, ptr %outputs.crossed, ptr %at.17.5, i8 signext 3)
; +  call void @opwest_profile_begin(ptr %measures, ptr @conventions_points, i32 signext 19)
; +  %status.17 = call signext i32 @conventions_bridge_cross(ptr %outputs.scores, ptr %outputs.turned, ptr @conventions_constant_table, ptr %at.17.3, ptr %outputs.crossed, ptr %at.17.5, i8 signext 3)
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 19)
; @@ next68:
; +  call void @opwest_profile_end(ptr %measures, ptr @conventions_points, i32 signext 0)
}
define signext i32 @conventions_run_profiled(ptr %inputs, ptr %outputs, ptr %workspace, ptr %devices) {
entry:
  %null.workspace = icmp eq ptr %workspace, null
  br i1 %null.workspace, label %unset, label %next1
next1:
  %running = getelementptr %conventions_workspace, ptr %workspace, i32 0, i32 3
  %is.alone = call zeroext i1 @opwest_port_take(ptr %running)
  br i1 %is.alone, label %alone, label %busy
alone:
  %code = call signext i32 @run_profiled_workspace(ptr %inputs, ptr %outputs, ptr %workspace, ptr %devices)
  call void @opwest_port_give(ptr %running)
  ret i32 %code
unset:
  ret i32 -22
busy:
  ret i32 -16
}
@numbers_2_3 = private unnamed_addr constant [2 x i64] [i64 2, i64 3]
@numbers_6 = private unnamed_addr constant [1 x i64] [i64 6]
@numbers_1 = private unnamed_addr constant [1 x i64] [i64 1]
@numbers_1_1 = private unnamed_addr constant [2 x i64] [i64 1, i64 1]
@numbers_4 = private unnamed_addr constant [1 x i64] [i64 4]
@numbers_3_1 = private unnamed_addr constant [2 x i64] [i64 3, i64 1]
@dimensions_2_3 = private unnamed_addr constant [2 x %halide_dimension_t] [
  %halide_dimension_t { i32 0, i32 3, i32 1, i32 0 },
  %halide_dimension_t { i32 0, i32 2, i32 3, i32 0 }
]
@dimensions_1 = private unnamed_addr constant [1 x %halide_dimension_t] [
  %halide_dimension_t { i32 0, i32 1, i32 1, i32 0 }
]
@dimensions_1_1 = private unnamed_addr constant [2 x %halide_dimension_t] [
  %halide_dimension_t { i32 0, i32 1, i32 1, i32 0 },
  %halide_dimension_t { i32 0, i32 1, i32 1, i32 0 }
]
@dimensions_6 = private unnamed_addr constant [1 x %halide_dimension_t] [
  %halide_dimension_t { i32 0, i32 6, i32 1, i32 0 }
]
@codes.scale = private unnamed_addr constant [6 x i32] [i32 7, i32 0, i32 0, i32 2, i32 0, i32 7]
@arrays.scale = private unnamed_addr constant { [2 x %DLTensor], [6 x i64], i64, i32 } { [2 x %DLTensor] [%DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr null, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr null, i64 0 }], [6 x i64] zeroinitializer, i64 0, i32 4 }, align 8
@codes.smooth = private unnamed_addr constant [2 x i32] [i32 7, i32 7]
@arrays.smooth = private unnamed_addr constant { [2 x %DLTensor], [2 x i64], i64, i32 } { [2 x %DLTensor] [%DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr null, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr null, i64 0 }], [2 x i64] zeroinitializer, i64 0, i32 4 }, align 8
@codes.gather = private unnamed_addr constant [4 x i32] [i32 3, i32 7, i32 7, i32 7]
@arrays.gather = private unnamed_addr constant { [3 x %DLTensor], [4 x i64], i64, i32 } { [3 x %DLTensor] [%DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr null, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 1, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_6, ptr null, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr null, i64 0 }], [4 x i64] zeroinitializer, i64 0, i32 4 }, align 8
@codes.move = private unnamed_addr constant [3 x i32] [i32 7, i32 7, i32 3]
@arrays.move = private unnamed_addr constant { [2 x %DLTensor], [3 x i64], i64, i32 } { [2 x %DLTensor] [%DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr null, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr null, i64 0 }], [3 x i64] zeroinitializer, i64 0, i32 4 }, align 8
@codes.kinds = private unnamed_addr constant [5 x i32] [i32 7, i32 7, i32 7, i32 7, i32 7]
@arrays.kinds = private unnamed_addr constant { [5 x %DLTensor], [5 x i64], i64, i32 } { [5 x %DLTensor] [%DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 1, %DLDataType { i8 1, i8 8, i16 1 }, ptr @numbers_1, ptr null, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 2, i8 16, i16 1 }, ptr @numbers_1_1, ptr null, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 0, %DLDataType { i8 2, i8 64, i16 1 }, ptr null, ptr null, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 1, %DLDataType { i8 1, i8 1, i16 1 }, ptr @numbers_1, ptr null, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 1, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_4, ptr null, i64 0 }], [5 x i64] zeroinitializer, i64 0, i32 4 }, align 8
@arrays.add = private unnamed_addr constant { [3 x %DLTensor], [3 x %TVMFFIAny], %TVMFFIAny } { [3 x %DLTensor] [%DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr @numbers_3_1, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr @numbers_3_1, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr @numbers_3_1, i64 0 }], [3 x %TVMFFIAny] [%TVMFFIAny { i32 7, i32 0, i64 0 }, %TVMFFIAny { i32 7, i32 0, i64 0 }, %TVMFFIAny { i32 7, i32 0, i64 0 }], %TVMFFIAny zeroinitializer }, align 8
@arrays.mix = private unnamed_addr constant { [3 x %DLTensor], [7 x %TVMFFIAny], %TVMFFIAny } { [3 x %DLTensor] [%DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr @numbers_3_1, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 1, %DLDataType { i8 6, i8 8, i16 1 }, ptr @numbers_1, ptr @numbers_1, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr @numbers_3_1, i64 0 }], [7 x %TVMFFIAny] [%TVMFFIAny { i32 7, i32 0, i64 0 }, %TVMFFIAny { i32 1, i32 0, i64 0 }, %TVMFFIAny { i32 3, i32 0, i64 0 }, %TVMFFIAny { i32 2, i32 0, i64 0 }, %TVMFFIAny { i32 4, i32 0, i64 0 }, %TVMFFIAny { i32 7, i32 0, i64 0 }, %TVMFFIAny { i32 7, i32 0, i64 0 }], %TVMFFIAny zeroinitializer }, align 8
@arrays.launch = private unnamed_addr constant { [2 x %DLTensor], [4 x %TVMFFIAny], %TVMFFIAny } { [2 x %DLTensor] [%DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr @numbers_3_1, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr @numbers_3_1, i64 0 }], [4 x %TVMFFIAny] [%TVMFFIAny { i32 7, i32 0, i64 0 }, %TVMFFIAny { i32 1, i32 0, i64 0 }, %TVMFFIAny { i32 7, i32 0, i64 0 }, %TVMFFIAny { i32 4, i32 0, i64 0 }], %TVMFFIAny zeroinitializer }, align 8
@codes.launch_packed = private unnamed_addr constant [4 x i32] [i32 7, i32 0, i32 7, i32 3]
@arrays.launch_packed = private unnamed_addr constant { [2 x %DLTensor], [4 x i64], i64, i32 } { [2 x %DLTensor] [%DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr null, i64 0 }, %DLTensor { ptr null, %DLDevice { i32 1, i32 0 }, i32 2, %DLDataType { i8 0, i8 32, i16 1 }, ptr @numbers_2_3, ptr null, i64 0 }], [4 x i64] zeroinitializer, i64 0, i32 4 }, align 8
@described.blur = private unnamed_addr constant { %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t } { %halide_buffer_t { i64 0, ptr null, ptr null, i64 0, %halide_type_t { i8 0, i8 32, i16 1 }, i32 2, ptr @dimensions_2_3, ptr null }, %halide_buffer_t { i64 0, ptr null, ptr null, i64 0, %halide_type_t { i8 1, i8 1, i16 1 }, i32 1, ptr @dimensions_1, ptr null }, %halide_buffer_t { i64 0, ptr null, ptr null, i64 0, %halide_type_t { i8 2, i8 16, i16 1 }, i32 2, ptr @dimensions_1_1, ptr null }, %halide_buffer_t { i64 0, ptr null, ptr null, i64 0, %halide_type_t { i8 2, i8 64, i16 1 }, i32 0, ptr null, ptr null }, %halide_buffer_t { i64 0, ptr null, ptr null, i64 0, %halide_type_t { i8 0, i8 32, i16 1 }, i32 2, ptr @dimensions_2_3, ptr null } }, align 8
@described.limited = private unnamed_addr constant { %halide_buffer_t, %halide_buffer_t } { %halide_buffer_t { i64 0, ptr null, ptr null, i64 0, %halide_type_t { i8 0, i8 32, i16 1 }, i32 1, ptr @dimensions_6, ptr null }, %halide_buffer_t { i64 0, ptr null, ptr null, i64 0, %halide_type_t { i8 0, i8 32, i16 1 }, i32 1, ptr @dimensions_6, ptr null } }, align 8
@described.turn = private unnamed_addr constant { %opwest_memref_2, %opwest_memref_2 } { %opwest_memref_2 { ptr null, ptr null, i64 0, [2 x i64] [i64 2, i64 3], [2 x i64] [i64 3, i64 1] }, %opwest_memref_2 { ptr null, ptr null, i64 0, [2 x i64] [i64 3, i64 2], [2 x i64] [i64 2, i64 1] } }, align 8
@described.shift = private unnamed_addr constant { %opwest_memref_0, %opwest_memref_1 } { %opwest_memref_0 { ptr null, ptr null, i64 0 }, %opwest_memref_1 { ptr null, ptr null, i64 0, [1 x i64] [i64 1], [1 x i64] [i64 1] } }, align 8
@described.sum = private unnamed_addr constant { %opwest_memref_2 } { %opwest_memref_2 { ptr null, ptr null, i64 0, [2 x i64] [i64 3, i64 2], [2 x i64] [i64 2, i64 1] } }, align 8
define internal signext i32 @conventions_bridge_scale(ptr %arg0, i8 signext %arg1, i64 %arg2, float %arg3, i8 zeroext %arg4, ptr %arg5) {
entry:
  %arrays = alloca { [2 x %DLTensor], [6 x i64], i64, i32 }, align 8
  %copied = call ptr @memcpy(ptr %arrays, ptr @arrays.scale, i64 ptrtoint (ptr getelementptr ({ [2 x %DLTensor], [6 x i64], i64, i32 }, ptr null, i32 1) to i64)) nobuiltin
  %values = getelementptr { [2 x %DLTensor], [6 x i64], i64, i32 }, ptr %arrays, i32 0, i32 1
  %result.at = getelementptr { [2 x %DLTensor], [6 x i64], i64, i32 }, ptr %arrays, i32 0, i32 2
  %result.code = getelementptr { [2 x %DLTensor], [6 x i64], i64, i32 }, ptr %arrays, i32 0, i32 3
  %place.0 = getelementptr i64, ptr %values, i32 0
  %tensor.0 = getelementptr %DLTensor, ptr %arrays, i32 0
  store ptr %arg0, ptr %tensor.0
  store ptr %tensor.0, ptr %place.0
  %place.1 = getelementptr i64, ptr %values, i32 1
  %wide.1 = sext i8 %arg1 to i64
  store i64 %wide.1, ptr %place.1
  %place.2 = getelementptr i64, ptr %values, i32 2
  store i64 %arg2, ptr %place.2
  %place.3 = getelementptr i64, ptr %values, i32 3
  %wide.3 = fpext float %arg3 to double
  store double %wide.3, ptr %place.3
  %place.4 = getelementptr i64, ptr %values, i32 4
  %wide.4 = zext i8 %arg4 to i64
  store i64 %wide.4, ptr %place.4
  %place.5 = getelementptr i64, ptr %values, i32 5
  %tensor.5 = getelementptr %DLTensor, ptr %arrays, i32 1
  store ptr %arg5, ptr %tensor.5
  store ptr %tensor.5, ptr %place.5
  %code = call signext i32 @conventions__tvmgen_conventions_scale(ptr %values, ptr @codes.scale, i32 signext 6, ptr %result.at, ptr %result.code, ptr null)
  %result = call signext i32 @opwest_tvm_code(i32 signext %code)
  ret i32 %result
}
define internal signext i32 @conventions_bridge_smooth(ptr %arg0, ptr %arg1, ptr %arg2) {
entry:
  %note = alloca %opwest_tvm_workspace
  %arrays = alloca { [2 x %DLTensor], [2 x i64], i64, i32 }, align 8
  %copied = call ptr @memcpy(ptr %arrays, ptr @arrays.smooth, i64 ptrtoint (ptr getelementptr ({ [2 x %DLTensor], [2 x i64], i64, i32 }, ptr null, i32 1) to i64)) nobuiltin
  %values = getelementptr { [2 x %DLTensor], [2 x i64], i64, i32 }, ptr %arrays, i32 0, i32 1
  %result.at = getelementptr { [2 x %DLTensor], [2 x i64], i64, i32 }, ptr %arrays, i32 0, i32 2
  %result.code = getelementptr { [2 x %DLTensor], [2 x i64], i64, i32 }, ptr %arrays, i32 0, i32 3
  %place.0 = getelementptr i64, ptr %values, i32 0
  %tensor.0 = getelementptr %DLTensor, ptr %arrays, i32 0
  store ptr %arg0, ptr %tensor.0
  store ptr %tensor.0, ptr %place.0
  %place.1 = getelementptr i64, ptr %values, i32 1
  %tensor.1 = getelementptr %DLTensor, ptr %arrays, i32 1
  store ptr %arg1, ptr %tensor.1
  store ptr %tensor.1, ptr %place.1
  call void @opwest_tvm_enter(ptr %note, ptr %arg2, i32 signext 6, i32 signext 4)
  %code = call signext i32 @conventions__tvmgen_conventions_smooth(ptr %values, ptr @codes.smooth, i32 signext 2, ptr %result.at, ptr %result.code, ptr null)
  %result = call signext i32 @opwest_tvm_leave(ptr %note, i32 signext %code)
  ret i32 %result
}
define internal signext i32 @conventions_bridge_gather(ptr %arg0, ptr %arg1, ptr %arg2, ptr %arg3) {
entry:
  %arrays = alloca { [3 x %DLTensor], [4 x i64], i64, i32 }, align 8
  %copied = call ptr @memcpy(ptr %arrays, ptr @arrays.gather, i64 ptrtoint (ptr getelementptr ({ [3 x %DLTensor], [4 x i64], i64, i32 }, ptr null, i32 1) to i64)) nobuiltin
  %values = getelementptr { [3 x %DLTensor], [4 x i64], i64, i32 }, ptr %arrays, i32 0, i32 1
  %result.at = getelementptr { [3 x %DLTensor], [4 x i64], i64, i32 }, ptr %arrays, i32 0, i32 2
  %result.code = getelementptr { [3 x %DLTensor], [4 x i64], i64, i32 }, ptr %arrays, i32 0, i32 3
  %place.0 = getelementptr i64, ptr %values, i32 0
  store ptr %arg0, ptr %place.0
  %place.1 = getelementptr i64, ptr %values, i32 1
  %tensor.1 = getelementptr %DLTensor, ptr %arrays, i32 0
  store ptr %arg1, ptr %tensor.1
  store ptr %tensor.1, ptr %place.1
  %place.2 = getelementptr i64, ptr %values, i32 2
  %tensor.2 = getelementptr %DLTensor, ptr %arrays, i32 1
  store ptr %arg2, ptr %tensor.2
  store ptr %tensor.2, ptr %place.2
  %place.3 = getelementptr i64, ptr %values, i32 3
  %tensor.3 = getelementptr %DLTensor, ptr %arrays, i32 2
  store ptr %arg3, ptr %tensor.3
  store ptr %tensor.3, ptr %place.3
  %code = call signext i32 @conventions__tvmgen_conventions_gather(ptr %values, ptr @codes.gather, i32 signext 4, ptr %result.at, ptr %result.code, ptr null)
  %result = call signext i32 @opwest_tvm_code(i32 signext %code)
  ret i32 %result
}
define internal signext i32 @conventions_bridge_move(ptr %arg0, ptr %arg1, ptr %arg2) {
entry:
  %arrays = alloca { [2 x %DLTensor], [3 x i64], i64, i32 }, align 8
  %copied = call ptr @memcpy(ptr %arrays, ptr @arrays.move, i64 ptrtoint (ptr getelementptr ({ [2 x %DLTensor], [3 x i64], i64, i32 }, ptr null, i32 1) to i64)) nobuiltin
  %values = getelementptr { [2 x %DLTensor], [3 x i64], i64, i32 }, ptr %arrays, i32 0, i32 1
  %result.at = getelementptr { [2 x %DLTensor], [3 x i64], i64, i32 }, ptr %arrays, i32 0, i32 2
  %result.code = getelementptr { [2 x %DLTensor], [3 x i64], i64, i32 }, ptr %arrays, i32 0, i32 3
  %place.0 = getelementptr i64, ptr %values, i32 0
  %tensor.0 = getelementptr %DLTensor, ptr %arrays, i32 0
  store ptr %arg0, ptr %tensor.0
  store ptr %tensor.0, ptr %place.0
  %place.1 = getelementptr i64, ptr %values, i32 1
  %tensor.1 = getelementptr %DLTensor, ptr %arrays, i32 1
  store ptr %arg1, ptr %tensor.1
  store ptr %tensor.1, ptr %place.1
  %place.2 = getelementptr i64, ptr %values, i32 2
  store ptr %arg2, ptr %place.2
  %code = call signext i32 @conventions__tvmgen_conventions_move(ptr %values, ptr @codes.move, i32 signext 3, ptr %result.at, ptr %result.code, ptr null)
  %result = call signext i32 @opwest_tvm_code(i32 signext %code)
  ret i32 %result
}
define internal signext i32 @conventions_bridge_kinds(ptr %arg0, ptr %arg1, ptr %arg2, ptr %arg3, ptr %arg4) {
entry:
  %arrays = alloca { [5 x %DLTensor], [5 x i64], i64, i32 }, align 8
  %copied = call ptr @memcpy(ptr %arrays, ptr @arrays.kinds, i64 ptrtoint (ptr getelementptr ({ [5 x %DLTensor], [5 x i64], i64, i32 }, ptr null, i32 1) to i64)) nobuiltin
  %values = getelementptr { [5 x %DLTensor], [5 x i64], i64, i32 }, ptr %arrays, i32 0, i32 1
  %result.at = getelementptr { [5 x %DLTensor], [5 x i64], i64, i32 }, ptr %arrays, i32 0, i32 2
  %result.code = getelementptr { [5 x %DLTensor], [5 x i64], i64, i32 }, ptr %arrays, i32 0, i32 3
  %place.0 = getelementptr i64, ptr %values, i32 0
  %tensor.0 = getelementptr %DLTensor, ptr %arrays, i32 0
  store ptr %arg0, ptr %tensor.0
  store ptr %tensor.0, ptr %place.0
  %place.1 = getelementptr i64, ptr %values, i32 1
  %tensor.1 = getelementptr %DLTensor, ptr %arrays, i32 1
  store ptr %arg1, ptr %tensor.1
  store ptr %tensor.1, ptr %place.1
  %place.2 = getelementptr i64, ptr %values, i32 2
  %tensor.2 = getelementptr %DLTensor, ptr %arrays, i32 2
  store ptr %arg2, ptr %tensor.2
  store ptr %tensor.2, ptr %place.2
  %place.3 = getelementptr i64, ptr %values, i32 3
  %tensor.3 = getelementptr %DLTensor, ptr %arrays, i32 3
  store ptr %arg3, ptr %tensor.3
  store ptr %tensor.3, ptr %place.3
  %place.4 = getelementptr i64, ptr %values, i32 4
  %tensor.4 = getelementptr %DLTensor, ptr %arrays, i32 4
  store ptr %arg4, ptr %tensor.4
  store ptr %tensor.4, ptr %place.4
  %code = call signext i32 @conventions__tvmgen_conventions_kinds(ptr %values, ptr @codes.kinds, i32 signext 5, ptr %result.at, ptr %result.code, ptr null)
  %result = call signext i32 @opwest_tvm_code(i32 signext %code)
  ret i32 %result
}
define internal signext i32 @conventions_bridge_add(ptr %arg0, ptr %arg1, ptr %arg2) {
entry:
  %arrays = alloca { [3 x %DLTensor], [3 x %TVMFFIAny], %TVMFFIAny }, align 8
  %copied = call ptr @memcpy(ptr %arrays, ptr @arrays.add, i64 ptrtoint (ptr getelementptr ({ [3 x %DLTensor], [3 x %TVMFFIAny], %TVMFFIAny }, ptr null, i32 1) to i64)) nobuiltin
  %values = getelementptr { [3 x %DLTensor], [3 x %TVMFFIAny], %TVMFFIAny }, ptr %arrays, i32 0, i32 1
  %result.at = getelementptr { [3 x %DLTensor], [3 x %TVMFFIAny], %TVMFFIAny }, ptr %arrays, i32 0, i32 2
  %place.0 = getelementptr %TVMFFIAny, ptr %values, i32 0, i32 2
  %tensor.0 = getelementptr %DLTensor, ptr %arrays, i32 0
  store ptr %arg0, ptr %tensor.0
  store ptr %tensor.0, ptr %place.0
  %place.1 = getelementptr %TVMFFIAny, ptr %values, i32 1, i32 2
  %tensor.1 = getelementptr %DLTensor, ptr %arrays, i32 1
  store ptr %arg1, ptr %tensor.1
  store ptr %tensor.1, ptr %place.1
  %place.2 = getelementptr %TVMFFIAny, ptr %values, i32 2, i32 2
  %tensor.2 = getelementptr %DLTensor, ptr %arrays, i32 2
  store ptr %arg2, ptr %tensor.2
  store ptr %tensor.2, ptr %place.2
  %code = call signext i32 @conventions____tvm_ffi_add(ptr null, ptr %values, i32 signext 3, ptr %result.at)
  %result = call signext i32 @opwest_tvm_code(i32 signext %code)
  ret i32 %result
}
define internal signext i32 @conventions_bridge_mix(ptr %arg0, i16 zeroext %arg1, double %arg2, i8 zeroext %arg3, ptr %arg4, ptr %arg5, ptr %arg6, ptr %arg7) {
entry:
  %note = alloca %opwest_tvm_workspace
  %arrays = alloca { [3 x %DLTensor], [7 x %TVMFFIAny], %TVMFFIAny }, align 8
  %copied = call ptr @memcpy(ptr %arrays, ptr @arrays.mix, i64 ptrtoint (ptr getelementptr ({ [3 x %DLTensor], [7 x %TVMFFIAny], %TVMFFIAny }, ptr null, i32 1) to i64)) nobuiltin
  %values = getelementptr { [3 x %DLTensor], [7 x %TVMFFIAny], %TVMFFIAny }, ptr %arrays, i32 0, i32 1
  %result.at = getelementptr { [3 x %DLTensor], [7 x %TVMFFIAny], %TVMFFIAny }, ptr %arrays, i32 0, i32 2
  %place.0 = getelementptr %TVMFFIAny, ptr %values, i32 0, i32 2
  %tensor.0 = getelementptr %DLTensor, ptr %arrays, i32 0
  store ptr %arg0, ptr %tensor.0
  store ptr %tensor.0, ptr %place.0
  %place.1 = getelementptr %TVMFFIAny, ptr %values, i32 1, i32 2
  %wide.1 = zext i16 %arg1 to i64
  store i64 %wide.1, ptr %place.1
  %place.2 = getelementptr %TVMFFIAny, ptr %values, i32 2, i32 2
  store double %arg2, ptr %place.2
  %place.3 = getelementptr %TVMFFIAny, ptr %values, i32 3, i32 2
  %wide.3 = zext i8 %arg3 to i64
  store i64 %wide.3, ptr %place.3
  %place.4 = getelementptr %TVMFFIAny, ptr %values, i32 4, i32 2
  store ptr %arg4, ptr %place.4
  %place.5 = getelementptr %TVMFFIAny, ptr %values, i32 5, i32 2
  %tensor.5 = getelementptr %DLTensor, ptr %arrays, i32 1
  store ptr %arg5, ptr %tensor.5
  store ptr %tensor.5, ptr %place.5
  %place.6 = getelementptr %TVMFFIAny, ptr %values, i32 6, i32 2
  %tensor.6 = getelementptr %DLTensor, ptr %arrays, i32 2
  store ptr %arg6, ptr %tensor.6
  store ptr %tensor.6, ptr %place.6
  call void @opwest_tvm_enter(ptr %note, ptr %arg7, i32 signext 2, i32 signext 6)
  %code = call signext i32 @conventions____tvm_ffi_mix(ptr null, ptr %values, i32 signext 7, ptr %result.at)
  %result = call signext i32 @opwest_tvm_leave(ptr %note, i32 signext %code)
  ret i32 %result
}
define internal signext i32 @conventions_bridge_launch(ptr %arg0, i32 signext %arg1, ptr %arg2, ptr %arg3, ptr %arg4) {
entry:
  %copied = call ptr @memcpy(ptr %arg3, ptr @arrays.launch, i64 ptrtoint (ptr getelementptr ({ [2 x %DLTensor], [4 x %TVMFFIAny], %TVMFFIAny }, ptr null, i32 1) to i64)) nobuiltin
  %values = getelementptr { [2 x %DLTensor], [4 x %TVMFFIAny], %TVMFFIAny }, ptr %arg3, i32 0, i32 1
  %result.at = getelementptr { [2 x %DLTensor], [4 x %TVMFFIAny], %TVMFFIAny }, ptr %arg3, i32 0, i32 2
  %place.0 = getelementptr %TVMFFIAny, ptr %values, i32 0, i32 2
  %tensor.0 = getelementptr %DLTensor, ptr %arg3, i32 0
  store ptr %arg0, ptr %tensor.0
  store ptr %tensor.0, ptr %place.0
  %place.1 = getelementptr %TVMFFIAny, ptr %values, i32 1, i32 2
  %wide.1 = sext i32 %arg1 to i64
  store i64 %wide.1, ptr %place.1
  %place.2 = getelementptr %TVMFFIAny, ptr %values, i32 2, i32 2
  %tensor.2 = getelementptr %DLTensor, ptr %arg3, i32 1
  store ptr %arg2, ptr %tensor.2
  store ptr %tensor.2, ptr %place.2
  %place.3 = getelementptr %TVMFFIAny, ptr %values, i32 3, i32 2
  store ptr %arg4, ptr %place.3
  %code = call signext i32 @conventions____tvm_ffi_launch(ptr null, ptr %values, i32 signext 4, ptr %result.at)
  %result = call signext i32 @opwest_tvm_code(i32 signext %code)
  ret i32 %result
}
define internal signext i32 @conventions_bridge_launch_packed(ptr %arg0, i32 signext %arg1, ptr %arg2, ptr %arg3, ptr %arg4) {
entry:
  %copied = call ptr @memcpy(ptr %arg3, ptr @arrays.launch_packed, i64 ptrtoint (ptr getelementptr ({ [2 x %DLTensor], [4 x i64], i64, i32 }, ptr null, i32 1) to i64)) nobuiltin
  %values = getelementptr { [2 x %DLTensor], [4 x i64], i64, i32 }, ptr %arg3, i32 0, i32 1
  %result.at = getelementptr { [2 x %DLTensor], [4 x i64], i64, i32 }, ptr %arg3, i32 0, i32 2
  %result.code = getelementptr { [2 x %DLTensor], [4 x i64], i64, i32 }, ptr %arg3, i32 0, i32 3
  %place.0 = getelementptr i64, ptr %values, i32 0
  %tensor.0 = getelementptr %DLTensor, ptr %arg3, i32 0
  store ptr %arg0, ptr %tensor.0
  store ptr %tensor.0, ptr %place.0
  %place.1 = getelementptr i64, ptr %values, i32 1
  %wide.1 = sext i32 %arg1 to i64
  store i64 %wide.1, ptr %place.1
  %place.2 = getelementptr i64, ptr %values, i32 2
  %tensor.2 = getelementptr %DLTensor, ptr %arg3, i32 1
  store ptr %arg2, ptr %tensor.2
  store ptr %tensor.2, ptr %place.2
  %place.3 = getelementptr i64, ptr %values, i32 3
  store ptr %arg4, ptr %place.3
  %code = call signext i32 @conventions__tvmgen_conventions_launch(ptr %values, ptr @codes.launch_packed, i32 signext 4, ptr %result.at, ptr %result.code, ptr null)
  %result = call signext i32 @opwest_tvm_code(i32 signext %code)
  ret i32 %result
}
define internal signext i32 @conventions_bridge_total(ptr %arg0, ptr %arg1, ptr %arg2) {
entry:
  %note = alloca %opwest_tvm_workspace
  call void @opwest_tvm_enter(ptr %note, ptr %arg2, i32 signext 2, i32 signext 3)
  %code = call signext i32 @conventions__total(ptr %arg0, ptr %arg1)
  %result = call signext i32 @opwest_tvm_leave(ptr %note, i32 signext %code)
  ret i32 %result
}
define internal void @conventions_bridge_label(ptr %arg0, i16 signext %arg1, ptr %arg2) {
entry:
  %value = call zeroext i8 @conventions__label(ptr %arg0, i16 signext %arg1)
  store i8 %value, ptr %arg2
  ret void
}
define internal void @conventions_bridge_mean(ptr %arg0, ptr %arg1) {
entry:
  %value = call double @conventions__mean(ptr %arg0)
  store double %value, ptr %arg1
  ret void
}
define internal signext i32 @conventions_bridge_blur(ptr %arg0, i8 zeroext %arg1, double %arg2, ptr %arg3, ptr %arg4, ptr %arg5, ptr %arg6, ptr %arg7) {
entry:
  %note = alloca %opwest_tvm_workspace
  %described = alloca { %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t }, align 8
  %copied = call ptr @memcpy(ptr %described, ptr @described.blur, i64 ptrtoint (ptr getelementptr ({ %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t }, ptr null, i32 1) to i64)) nobuiltin
  %tensor_0 = getelementptr { %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t }, ptr %described, i32 0, i32 0
  %tensor_0.host = getelementptr %halide_buffer_t, ptr %tensor_0, i32 0, i32 2
  store ptr %arg0, ptr %tensor_0.host
  %tensor_3 = getelementptr { %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t }, ptr %described, i32 0, i32 1
  %tensor_3.host = getelementptr %halide_buffer_t, ptr %tensor_3, i32 0, i32 2
  store ptr %arg3, ptr %tensor_3.host
  %tensor_4 = getelementptr { %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t }, ptr %described, i32 0, i32 2
  %tensor_4.host = getelementptr %halide_buffer_t, ptr %tensor_4, i32 0, i32 2
  store ptr %arg4, ptr %tensor_4.host
  %tensor_5 = getelementptr { %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t }, ptr %described, i32 0, i32 3
  %tensor_5.host = getelementptr %halide_buffer_t, ptr %tensor_5, i32 0, i32 2
  store ptr %arg5, ptr %tensor_5.host
  %tensor_6 = getelementptr { %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t, %halide_buffer_t }, ptr %described, i32 0, i32 4
  %tensor_6.host = getelementptr %halide_buffer_t, ptr %tensor_6, i32 0, i32 2
  store ptr %arg6, ptr %tensor_6.host
  call void @opwest_tvm_enter(ptr %note, ptr %arg7, i32 signext 4, i32 signext 4)
  %code = call signext i32 @conventions__blur(ptr %tensor_0, i8 zeroext %arg1, double %arg2, ptr %tensor_3, ptr %tensor_4, ptr %tensor_5, ptr %tensor_6)
  %converted = call signext i32 @opwest_halide_code(i32 signext %code)
  %result = call signext i32 @opwest_tvm_leave(ptr %note, i32 signext %converted)
  ret i32 %result
}
define internal signext i32 @conventions_bridge_limited(ptr %arg0, i32 signext %arg1, ptr %arg2) {
entry:
  %described = alloca { %halide_buffer_t, %halide_buffer_t }, align 8
  %copied = call ptr @memcpy(ptr %described, ptr @described.limited, i64 ptrtoint (ptr getelementptr ({ %halide_buffer_t, %halide_buffer_t }, ptr null, i32 1) to i64)) nobuiltin
  %tensor_0 = getelementptr { %halide_buffer_t, %halide_buffer_t }, ptr %described, i32 0, i32 0
  %tensor_0.host = getelementptr %halide_buffer_t, ptr %tensor_0, i32 0, i32 2
  store ptr %arg0, ptr %tensor_0.host
  %tensor_2 = getelementptr { %halide_buffer_t, %halide_buffer_t }, ptr %described, i32 0, i32 1
  %tensor_2.host = getelementptr %halide_buffer_t, ptr %tensor_2, i32 0, i32 2
  store ptr %arg2, ptr %tensor_2.host
  %code = call signext i32 @conventions__limited(ptr %tensor_0, i32 signext %arg1, ptr %tensor_2)
  %converted = call signext i32 @opwest_halide_code(i32 signext %code)
  ret i32 %converted
}
define internal void @conventions_bridge_turn(ptr %arg0, i8 signext %arg1, ptr %arg2) {
entry:
  %described = alloca { %opwest_memref_2, %opwest_memref_2 }, align 8
  %copied = call ptr @memcpy(ptr %described, ptr @described.turn, i64 ptrtoint (ptr getelementptr ({ %opwest_memref_2, %opwest_memref_2 }, ptr null, i32 1) to i64)) nobuiltin
  %tensor_0 = getelementptr { %opwest_memref_2, %opwest_memref_2 }, ptr %described, i32 0, i32 0
  %tensor_0.allocated = getelementptr %opwest_memref_2, ptr %tensor_0, i32 0, i32 0
  store ptr %arg0, ptr %tensor_0.allocated
  %tensor_0.aligned = getelementptr %opwest_memref_2, ptr %tensor_0, i32 0, i32 1
  store ptr %arg0, ptr %tensor_0.aligned
  %tensor_2 = getelementptr { %opwest_memref_2, %opwest_memref_2 }, ptr %described, i32 0, i32 1
  %tensor_2.allocated = getelementptr %opwest_memref_2, ptr %tensor_2, i32 0, i32 0
  store ptr %arg2, ptr %tensor_2.allocated
  %tensor_2.aligned = getelementptr %opwest_memref_2, ptr %tensor_2, i32 0, i32 1
  store ptr %arg2, ptr %tensor_2.aligned
  call void @conventions___mlir_ciface_turn(ptr %tensor_0, i8 signext %arg1, ptr %tensor_2)
  ret void
}
define internal signext i32 @conventions_bridge_shift(ptr %arg0, ptr %arg1) {
entry:
  %described = alloca { %opwest_memref_0, %opwest_memref_1 }, align 8
  %copied = call ptr @memcpy(ptr %described, ptr @described.shift, i64 ptrtoint (ptr getelementptr ({ %opwest_memref_0, %opwest_memref_1 }, ptr null, i32 1) to i64)) nobuiltin
  %tensor_0 = getelementptr { %opwest_memref_0, %opwest_memref_1 }, ptr %described, i32 0, i32 0
  %tensor_0.allocated = getelementptr %opwest_memref_0, ptr %tensor_0, i32 0, i32 0
  store ptr %arg0, ptr %tensor_0.allocated
  %tensor_0.aligned = getelementptr %opwest_memref_0, ptr %tensor_0, i32 0, i32 1
  store ptr %arg0, ptr %tensor_0.aligned
  %tensor_1 = getelementptr { %opwest_memref_0, %opwest_memref_1 }, ptr %described, i32 0, i32 1
  %tensor_1.allocated = getelementptr %opwest_memref_1, ptr %tensor_1, i32 0, i32 0
  store ptr %arg1, ptr %tensor_1.allocated
  %tensor_1.aligned = getelementptr %opwest_memref_1, ptr %tensor_1, i32 0, i32 1
  store ptr %arg1, ptr %tensor_1.aligned
  %code = call signext i32 @conventions___mlir_ciface_shift(ptr %tensor_0, ptr %tensor_1)
  ret i32 %code
}
define internal void @conventions_bridge_sum(ptr %arg0, ptr %arg1) {
entry:
  %described = alloca { %opwest_memref_2 }, align 8
  %copied = call ptr @memcpy(ptr %described, ptr @described.sum, i64 ptrtoint (ptr getelementptr ({ %opwest_memref_2 }, ptr null, i32 1) to i64)) nobuiltin
  %tensor_0 = getelementptr { %opwest_memref_2 }, ptr %described, i32 0, i32 0
  %tensor_0.allocated = getelementptr %opwest_memref_2, ptr %tensor_0, i32 0, i32 0
  store ptr %arg0, ptr %tensor_0.allocated
  %tensor_0.aligned = getelementptr %opwest_memref_2, ptr %tensor_0, i32 0, i32 1
  store ptr %arg0, ptr %tensor_0.aligned
  %value = call i64 @conventions___mlir_ciface_sum(ptr %tensor_0)
  store i64 %value, ptr %arg1
  ret void
}
define internal signext i32 @conventions_bridge_cross(ptr %arg0, ptr %arg1, ptr %arg2, ptr %arg3, ptr %arg4, ptr %arg5, i8 signext %arg6) {
entry:
  %table.0 = alloca [4 x ptr]
  %table.0.0 = getelementptr ptr, ptr %table.0, i32 0
  store ptr %arg0, ptr %table.0.0
  %table.0.1 = getelementptr ptr, ptr %table.0, i32 1
  store ptr %arg1, ptr %table.0.1
  %table.0.2 = getelementptr ptr, ptr %table.0, i32 2
  store ptr null, ptr %table.0.2
  %table.0.3 = getelementptr ptr, ptr %table.0, i32 3
  store ptr null, ptr %table.0.3
  %table.1 = alloca [4 x ptr]
  %table.1.0 = getelementptr ptr, ptr %table.1, i32 0
  store ptr %arg2, ptr %table.1.0
  %table.1.1 = getelementptr ptr, ptr %table.1, i32 1
  store ptr %arg3, ptr %table.1.1
  %table.1.2 = getelementptr ptr, ptr %table.1, i32 2
  store ptr %arg4, ptr %table.1.2
  %table.1.3 = getelementptr ptr, ptr %table.1, i32 3
  store ptr null, ptr %table.1.3
  %code = call signext i32 @conventions__cross(ptr %table.0, ptr %table.1, ptr null, ptr %arg5, i8 signext %arg6)
  ret i32 %code
}
define signext i32 @conventions_packed_add(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 3
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 7
  br i1 %fits.1, label %code2, label %wrong
code2:
  %code.at.2 = getelementptr i32, ptr %codes, i32 2
  %code.2 = load i32, ptr %code.at.2
  %fits.2 = icmp eq i32 %code.2, 7
  br i1 %fits.2, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %handle.1 = load ptr, ptr %at.1
  %start.1 = load ptr, ptr %handle.1
  %offset.at.1 = getelementptr %DLTensor, ptr %handle.1, i32 0, i32 6
  %offset.1 = load i64, ptr %offset.at.1
  %data.1 = getelementptr i8, ptr %start.1, i64 %offset.1
  %at.2 = getelementptr i64, ptr %args, i32 2
  %handle.2 = load ptr, ptr %at.2
  %start.2 = load ptr, ptr %handle.2
  %offset.at.2 = getelementptr %DLTensor, ptr %handle.2, i32 0, i32 6
  %offset.2 = load i64, ptr %offset.at.2
  %data.2 = getelementptr i8, ptr %start.2, i64 %offset.2
  %status = call signext i32 @conventions_bridge_add(ptr %data.0, ptr %data.1, ptr %data.2)
  ret i32 %status
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_mix(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 8
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 0
  br i1 %fits.1, label %code2, label %wrong
code2:
  %code.at.2 = getelementptr i32, ptr %codes, i32 2
  %code.2 = load i32, ptr %code.at.2
  %fits.2 = icmp eq i32 %code.2, 2
  br i1 %fits.2, label %code3, label %wrong
code3:
  %code.at.3 = getelementptr i32, ptr %codes, i32 3
  %code.3 = load i32, ptr %code.at.3
  %fits.3 = icmp eq i32 %code.3, 0
  br i1 %fits.3, label %code4, label %wrong
code4:
  %code.at.4 = getelementptr i32, ptr %codes, i32 4
  %code.4 = load i32, ptr %code.at.4
  %fits.4 = icmp eq i32 %code.4, 7
  br i1 %fits.4, label %code5, label %wrong
code5:
  %code.at.5 = getelementptr i32, ptr %codes, i32 5
  %code.5 = load i32, ptr %code.at.5
  %fits.5 = icmp eq i32 %code.5, 7
  br i1 %fits.5, label %code6, label %wrong
code6:
  %code.at.6 = getelementptr i32, ptr %codes, i32 6
  %code.6 = load i32, ptr %code.at.6
  %fits.6 = icmp eq i32 %code.6, 7
  br i1 %fits.6, label %code7, label %wrong
code7:
  %code.at.7 = getelementptr i32, ptr %codes, i32 7
  %code.7 = load i32, ptr %code.at.7
  %fits.7 = icmp eq i32 %code.7, 7
  br i1 %fits.7, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %value.1.wide = load i64, ptr %at.1
  %value.1 = trunc i64 %value.1.wide to i16
  %at.2 = getelementptr i64, ptr %args, i32 2
  %value.2 = load double, ptr %at.2
  %at.3 = getelementptr i64, ptr %args, i32 3
  %value.3.wide = load i64, ptr %at.3
  %value.3 = trunc i64 %value.3.wide to i8
  %at.4 = getelementptr i64, ptr %args, i32 4
  %handle.4 = load ptr, ptr %at.4
  %start.4 = load ptr, ptr %handle.4
  %offset.at.4 = getelementptr %DLTensor, ptr %handle.4, i32 0, i32 6
  %offset.4 = load i64, ptr %offset.at.4
  %data.4 = getelementptr i8, ptr %start.4, i64 %offset.4
  %at.5 = getelementptr i64, ptr %args, i32 5
  %handle.5 = load ptr, ptr %at.5
  %start.5 = load ptr, ptr %handle.5
  %offset.at.5 = getelementptr %DLTensor, ptr %handle.5, i32 0, i32 6
  %offset.5 = load i64, ptr %offset.at.5
  %data.5 = getelementptr i8, ptr %start.5, i64 %offset.5
  %at.6 = getelementptr i64, ptr %args, i32 6
  %handle.6 = load ptr, ptr %at.6
  %start.6 = load ptr, ptr %handle.6
  %offset.at.6 = getelementptr %DLTensor, ptr %handle.6, i32 0, i32 6
  %offset.6 = load i64, ptr %offset.at.6
  %data.6 = getelementptr i8, ptr %start.6, i64 %offset.6
  %at.7 = getelementptr i64, ptr %args, i32 7
  %handle.7 = load ptr, ptr %at.7
  %start.7 = load ptr, ptr %handle.7
  %offset.at.7 = getelementptr %DLTensor, ptr %handle.7, i32 0, i32 6
  %offset.7 = load i64, ptr %offset.at.7
  %data.7 = getelementptr i8, ptr %start.7, i64 %offset.7
  %status = call signext i32 @conventions_bridge_mix(ptr %data.0, i16 zeroext %value.1, double %value.2, i8 zeroext %value.3, ptr %data.4, ptr %data.5, ptr %data.6, ptr %data.7)
  ret i32 %status
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_launch(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 5
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 0
  br i1 %fits.1, label %code2, label %wrong
code2:
  %code.at.2 = getelementptr i32, ptr %codes, i32 2
  %code.2 = load i32, ptr %code.at.2
  %fits.2 = icmp eq i32 %code.2, 7
  br i1 %fits.2, label %code3, label %wrong
code3:
  %code.at.3 = getelementptr i32, ptr %codes, i32 3
  %code.3 = load i32, ptr %code.at.3
  %fits.3 = icmp eq i32 %code.3, 7
  br i1 %fits.3, label %code4, label %wrong
code4:
  %code.at.4 = getelementptr i32, ptr %codes, i32 4
  %code.4 = load i32, ptr %code.at.4
  %fits.4 = icmp eq i32 %code.4, 3
  br i1 %fits.4, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %value.1.wide = load i64, ptr %at.1
  %value.1 = trunc i64 %value.1.wide to i32
  %at.2 = getelementptr i64, ptr %args, i32 2
  %handle.2 = load ptr, ptr %at.2
  %start.2 = load ptr, ptr %handle.2
  %offset.at.2 = getelementptr %DLTensor, ptr %handle.2, i32 0, i32 6
  %offset.2 = load i64, ptr %offset.at.2
  %data.2 = getelementptr i8, ptr %start.2, i64 %offset.2
  %at.3 = getelementptr i64, ptr %args, i32 3
  %handle.3 = load ptr, ptr %at.3
  %start.3 = load ptr, ptr %handle.3
  %offset.at.3 = getelementptr %DLTensor, ptr %handle.3, i32 0, i32 6
  %offset.3 = load i64, ptr %offset.at.3
  %data.3 = getelementptr i8, ptr %start.3, i64 %offset.3
  %at.4 = getelementptr i64, ptr %args, i32 4
  %handle.4 = load ptr, ptr %at.4
  %status = call signext i32 @conventions_bridge_launch(ptr %data.0, i32 signext %value.1, ptr %data.2, ptr %data.3, ptr %handle.4)
  ret i32 %status
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_total(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 3
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 7
  br i1 %fits.1, label %code2, label %wrong
code2:
  %code.at.2 = getelementptr i32, ptr %codes, i32 2
  %code.2 = load i32, ptr %code.at.2
  %fits.2 = icmp eq i32 %code.2, 7
  br i1 %fits.2, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %handle.1 = load ptr, ptr %at.1
  %start.1 = load ptr, ptr %handle.1
  %offset.at.1 = getelementptr %DLTensor, ptr %handle.1, i32 0, i32 6
  %offset.1 = load i64, ptr %offset.at.1
  %data.1 = getelementptr i8, ptr %start.1, i64 %offset.1
  %at.2 = getelementptr i64, ptr %args, i32 2
  %handle.2 = load ptr, ptr %at.2
  %start.2 = load ptr, ptr %handle.2
  %offset.at.2 = getelementptr %DLTensor, ptr %handle.2, i32 0, i32 6
  %offset.2 = load i64, ptr %offset.at.2
  %data.2 = getelementptr i8, ptr %start.2, i64 %offset.2
  %status = call signext i32 @conventions_bridge_total(ptr %data.0, ptr %data.1, ptr %data.2)
  ret i32 %status
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_negate(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 1
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  call void @conventions__negate(ptr %data.0)
  ret i32 0
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_label(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 3
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 0
  br i1 %fits.1, label %code2, label %wrong
code2:
  %code.at.2 = getelementptr i32, ptr %codes, i32 2
  %code.2 = load i32, ptr %code.at.2
  %fits.2 = icmp eq i32 %code.2, 7
  br i1 %fits.2, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %value.1.wide = load i64, ptr %at.1
  %value.1 = trunc i64 %value.1.wide to i16
  %at.2 = getelementptr i64, ptr %args, i32 2
  %handle.2 = load ptr, ptr %at.2
  %start.2 = load ptr, ptr %handle.2
  %offset.at.2 = getelementptr %DLTensor, ptr %handle.2, i32 0, i32 6
  %offset.2 = load i64, ptr %offset.at.2
  %data.2 = getelementptr i8, ptr %start.2, i64 %offset.2
  call void @conventions_bridge_label(ptr %data.0, i16 signext %value.1, ptr %data.2)
  ret i32 0
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_mean(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 2
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 7
  br i1 %fits.1, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %handle.1 = load ptr, ptr %at.1
  %start.1 = load ptr, ptr %handle.1
  %offset.at.1 = getelementptr %DLTensor, ptr %handle.1, i32 0, i32 6
  %offset.1 = load i64, ptr %offset.at.1
  %data.1 = getelementptr i8, ptr %start.1, i64 %offset.1
  call void @conventions_bridge_mean(ptr %data.0, ptr %data.1)
  ret i32 0
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_blur(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 8
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 0
  br i1 %fits.1, label %code2, label %wrong
code2:
  %code.at.2 = getelementptr i32, ptr %codes, i32 2
  %code.2 = load i32, ptr %code.at.2
  %fits.2 = icmp eq i32 %code.2, 2
  br i1 %fits.2, label %code3, label %wrong
code3:
  %code.at.3 = getelementptr i32, ptr %codes, i32 3
  %code.3 = load i32, ptr %code.at.3
  %fits.3 = icmp eq i32 %code.3, 7
  br i1 %fits.3, label %code4, label %wrong
code4:
  %code.at.4 = getelementptr i32, ptr %codes, i32 4
  %code.4 = load i32, ptr %code.at.4
  %fits.4 = icmp eq i32 %code.4, 7
  br i1 %fits.4, label %code5, label %wrong
code5:
  %code.at.5 = getelementptr i32, ptr %codes, i32 5
  %code.5 = load i32, ptr %code.at.5
  %fits.5 = icmp eq i32 %code.5, 7
  br i1 %fits.5, label %code6, label %wrong
code6:
  %code.at.6 = getelementptr i32, ptr %codes, i32 6
  %code.6 = load i32, ptr %code.at.6
  %fits.6 = icmp eq i32 %code.6, 7
  br i1 %fits.6, label %code7, label %wrong
code7:
  %code.at.7 = getelementptr i32, ptr %codes, i32 7
  %code.7 = load i32, ptr %code.at.7
  %fits.7 = icmp eq i32 %code.7, 7
  br i1 %fits.7, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %value.1.wide = load i64, ptr %at.1
  %value.1 = trunc i64 %value.1.wide to i8
  %at.2 = getelementptr i64, ptr %args, i32 2
  %value.2 = load double, ptr %at.2
  %at.3 = getelementptr i64, ptr %args, i32 3
  %handle.3 = load ptr, ptr %at.3
  %start.3 = load ptr, ptr %handle.3
  %offset.at.3 = getelementptr %DLTensor, ptr %handle.3, i32 0, i32 6
  %offset.3 = load i64, ptr %offset.at.3
  %data.3 = getelementptr i8, ptr %start.3, i64 %offset.3
  %at.4 = getelementptr i64, ptr %args, i32 4
  %handle.4 = load ptr, ptr %at.4
  %start.4 = load ptr, ptr %handle.4
  %offset.at.4 = getelementptr %DLTensor, ptr %handle.4, i32 0, i32 6
  %offset.4 = load i64, ptr %offset.at.4
  %data.4 = getelementptr i8, ptr %start.4, i64 %offset.4
  %at.5 = getelementptr i64, ptr %args, i32 5
  %handle.5 = load ptr, ptr %at.5
  %start.5 = load ptr, ptr %handle.5
  %offset.at.5 = getelementptr %DLTensor, ptr %handle.5, i32 0, i32 6
  %offset.5 = load i64, ptr %offset.at.5
  %data.5 = getelementptr i8, ptr %start.5, i64 %offset.5
  %at.6 = getelementptr i64, ptr %args, i32 6
  %handle.6 = load ptr, ptr %at.6
  %start.6 = load ptr, ptr %handle.6
  %offset.at.6 = getelementptr %DLTensor, ptr %handle.6, i32 0, i32 6
  %offset.6 = load i64, ptr %offset.at.6
  %data.6 = getelementptr i8, ptr %start.6, i64 %offset.6
  %at.7 = getelementptr i64, ptr %args, i32 7
  %handle.7 = load ptr, ptr %at.7
  %start.7 = load ptr, ptr %handle.7
  %offset.at.7 = getelementptr %DLTensor, ptr %handle.7, i32 0, i32 6
  %offset.7 = load i64, ptr %offset.at.7
  %data.7 = getelementptr i8, ptr %start.7, i64 %offset.7
  %status = call signext i32 @conventions_bridge_blur(ptr %data.0, i8 zeroext %value.1, double %value.2, ptr %data.3, ptr %data.4, ptr %data.5, ptr %data.6, ptr %data.7)
  ret i32 %status
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_limited(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 3
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 0
  br i1 %fits.1, label %code2, label %wrong
code2:
  %code.at.2 = getelementptr i32, ptr %codes, i32 2
  %code.2 = load i32, ptr %code.at.2
  %fits.2 = icmp eq i32 %code.2, 7
  br i1 %fits.2, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %value.1.wide = load i64, ptr %at.1
  %value.1 = trunc i64 %value.1.wide to i32
  %at.2 = getelementptr i64, ptr %args, i32 2
  %handle.2 = load ptr, ptr %at.2
  %start.2 = load ptr, ptr %handle.2
  %offset.at.2 = getelementptr %DLTensor, ptr %handle.2, i32 0, i32 6
  %offset.2 = load i64, ptr %offset.at.2
  %data.2 = getelementptr i8, ptr %start.2, i64 %offset.2
  %status = call signext i32 @conventions_bridge_limited(ptr %data.0, i32 signext %value.1, ptr %data.2)
  ret i32 %status
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_turn(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 3
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 0
  br i1 %fits.1, label %code2, label %wrong
code2:
  %code.at.2 = getelementptr i32, ptr %codes, i32 2
  %code.2 = load i32, ptr %code.at.2
  %fits.2 = icmp eq i32 %code.2, 7
  br i1 %fits.2, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %value.1.wide = load i64, ptr %at.1
  %value.1 = trunc i64 %value.1.wide to i8
  %at.2 = getelementptr i64, ptr %args, i32 2
  %handle.2 = load ptr, ptr %at.2
  %start.2 = load ptr, ptr %handle.2
  %offset.at.2 = getelementptr %DLTensor, ptr %handle.2, i32 0, i32 6
  %offset.2 = load i64, ptr %offset.at.2
  %data.2 = getelementptr i8, ptr %start.2, i64 %offset.2
  call void @conventions_bridge_turn(ptr %data.0, i8 signext %value.1, ptr %data.2)
  ret i32 0
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_shift(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 2
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 7
  br i1 %fits.1, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %handle.1 = load ptr, ptr %at.1
  %start.1 = load ptr, ptr %handle.1
  %offset.at.1 = getelementptr %DLTensor, ptr %handle.1, i32 0, i32 6
  %offset.1 = load i64, ptr %offset.at.1
  %data.1 = getelementptr i8, ptr %start.1, i64 %offset.1
  %status = call signext i32 @conventions_bridge_shift(ptr %data.0, ptr %data.1)
  ret i32 %status
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_sum(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 2
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 7
  br i1 %fits.1, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %handle.1 = load ptr, ptr %at.1
  %start.1 = load ptr, ptr %handle.1
  %offset.at.1 = getelementptr %DLTensor, ptr %handle.1, i32 0, i32 6
  %offset.1 = load i64, ptr %offset.at.1
  %data.1 = getelementptr i8, ptr %start.1, i64 %offset.1
  call void @conventions_bridge_sum(ptr %data.0, ptr %data.1)
  ret i32 0
wrong:
  ret i32 -1
}
define signext i32 @conventions_packed_cross(ptr %args, ptr %codes, i32 signext %count, ptr %ret, ptr %ret.code, ptr %resource) {
entry:
  %many = icmp eq i32 %count, 7
  br i1 %many, label %code0, label %wrong
code0:
  %code.at.0 = getelementptr i32, ptr %codes, i32 0
  %code.0 = load i32, ptr %code.at.0
  %fits.0 = icmp eq i32 %code.0, 7
  br i1 %fits.0, label %code1, label %wrong
code1:
  %code.at.1 = getelementptr i32, ptr %codes, i32 1
  %code.1 = load i32, ptr %code.at.1
  %fits.1 = icmp eq i32 %code.1, 7
  br i1 %fits.1, label %code2, label %wrong
code2:
  %code.at.2 = getelementptr i32, ptr %codes, i32 2
  %code.2 = load i32, ptr %code.at.2
  %fits.2 = icmp eq i32 %code.2, 7
  br i1 %fits.2, label %code3, label %wrong
code3:
  %code.at.3 = getelementptr i32, ptr %codes, i32 3
  %code.3 = load i32, ptr %code.at.3
  %fits.3 = icmp eq i32 %code.3, 7
  br i1 %fits.3, label %code4, label %wrong
code4:
  %code.at.4 = getelementptr i32, ptr %codes, i32 4
  %code.4 = load i32, ptr %code.at.4
  %fits.4 = icmp eq i32 %code.4, 7
  br i1 %fits.4, label %code5, label %wrong
code5:
  %code.at.5 = getelementptr i32, ptr %codes, i32 5
  %code.5 = load i32, ptr %code.at.5
  %fits.5 = icmp eq i32 %code.5, 7
  br i1 %fits.5, label %code6, label %wrong
code6:
  %code.at.6 = getelementptr i32, ptr %codes, i32 6
  %code.6 = load i32, ptr %code.at.6
  %fits.6 = icmp eq i32 %code.6, 0
  br i1 %fits.6, label %call, label %wrong
call:
  %at.0 = getelementptr i64, ptr %args, i32 0
  %handle.0 = load ptr, ptr %at.0
  %start.0 = load ptr, ptr %handle.0
  %offset.at.0 = getelementptr %DLTensor, ptr %handle.0, i32 0, i32 6
  %offset.0 = load i64, ptr %offset.at.0
  %data.0 = getelementptr i8, ptr %start.0, i64 %offset.0
  %at.1 = getelementptr i64, ptr %args, i32 1
  %handle.1 = load ptr, ptr %at.1
  %start.1 = load ptr, ptr %handle.1
  %offset.at.1 = getelementptr %DLTensor, ptr %handle.1, i32 0, i32 6
  %offset.1 = load i64, ptr %offset.at.1
  %data.1 = getelementptr i8, ptr %start.1, i64 %offset.1
  %at.2 = getelementptr i64, ptr %args, i32 2
  %handle.2 = load ptr, ptr %at.2
  %start.2 = load ptr, ptr %handle.2
  %offset.at.2 = getelementptr %DLTensor, ptr %handle.2, i32 0, i32 6
  %offset.2 = load i64, ptr %offset.at.2
  %data.2 = getelementptr i8, ptr %start.2, i64 %offset.2
  %at.3 = getelementptr i64, ptr %args, i32 3
  %handle.3 = load ptr, ptr %at.3
  %start.3 = load ptr, ptr %handle.3
  %offset.at.3 = getelementptr %DLTensor, ptr %handle.3, i32 0, i32 6
  %offset.3 = load i64, ptr %offset.at.3
  %data.3 = getelementptr i8, ptr %start.3, i64 %offset.3
  %at.4 = getelementptr i64, ptr %args, i32 4
  %handle.4 = load ptr, ptr %at.4
  %start.4 = load ptr, ptr %handle.4
  %offset.at.4 = getelementptr %DLTensor, ptr %handle.4, i32 0, i32 6
  %offset.4 = load i64, ptr %offset.at.4
  %data.4 = getelementptr i8, ptr %start.4, i64 %offset.4
  %at.5 = getelementptr i64, ptr %args, i32 5
  %handle.5 = load ptr, ptr %at.5
  %start.5 = load ptr, ptr %handle.5
  %offset.at.5 = getelementptr %DLTensor, ptr %handle.5, i32 0, i32 6
  %offset.5 = load i64, ptr %offset.at.5
  %data.5 = getelementptr i8, ptr %start.5, i64 %offset.5
  %at.6 = getelementptr i64, ptr %args, i32 6
  %value.6.wide = load i64, ptr %at.6
  %value.6 = trunc i64 %value.6.wide to i8
  %status = call signext i32 @conventions_bridge_cross(ptr %data.0, ptr %data.1, ptr %data.2, ptr %data.3, ptr %data.4, ptr %data.5, i8 signext %value.6)
  ret i32 %status
wrong:
  ret i32 -1
}
@tvm_names = private unnamed_addr constant { i16, [226 x i8] } { i16 19, [226 x i8] c"tvmgen_conventions_scale\00tvmgen_conventions_smooth\00tvmgen_conventions_gather\00tvmgen_conventions_move\00tvmgen_conventions_kinds\00add\00mix\00launch\00tvmgen_conventions_launch\00total\00negate\00label\00mean\00blur\00limited\00turn\00shift\00sum\00cross\00\00" }
@tvm_functions = private unnamed_addr constant [19 x ptr] [ptr @conventions__tvmgen_conventions_scale, ptr @conventions__tvmgen_conventions_smooth, ptr @conventions__tvmgen_conventions_gather, ptr @conventions__tvmgen_conventions_move, ptr @conventions__tvmgen_conventions_kinds, ptr @conventions_packed_add, ptr @conventions_packed_mix, ptr @conventions_packed_launch, ptr @conventions__tvmgen_conventions_launch, ptr @conventions_packed_total, ptr @conventions_packed_negate, ptr @conventions_packed_label, ptr @conventions_packed_mean, ptr @conventions_packed_blur, ptr @conventions_packed_limited, ptr @conventions_packed_turn, ptr @conventions_packed_shift, ptr @conventions_packed_sum, ptr @conventions_packed_cross]
@tvm_registry = private unnamed_addr constant { ptr, ptr } { ptr @tvm_names, ptr @tvm_functions }
@tvm_library = private unnamed_addr constant { ptr } { ptr @tvm_registry }
define ptr @TVMSystemLibEntryPoint() {
entry:
  ret ptr @tvm_library
}
define internal signext i32 @opwest_adapter_of_scale(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1.wide = load i64, ptr %at.1
  %arg.1 = trunc i64 %arg.1.wide to i8
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load i64, ptr %at.2
  %at.3 = getelementptr %opwest_value, ptr %args, i32 3
  %arg.3.wide = load double, ptr %at.3
  %arg.3 = fptrunc double %arg.3.wide to float
  %at.4 = getelementptr %opwest_value, ptr %args, i32 4
  %arg.4.wide = load i64, ptr %at.4
  %arg.4 = trunc i64 %arg.4.wide to i8
  %at.5 = getelementptr %opwest_value, ptr %args, i32 5
  %arg.5 = load ptr, ptr %at.5
  %status = tail call signext i32 @conventions_bridge_scale(ptr %arg.0, i8 signext %arg.1, i64 %arg.2, float %arg.3, i8 zeroext %arg.4, ptr %arg.5)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_smooth(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1 = load ptr, ptr %at.1
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  %status = tail call signext i32 @conventions_bridge_smooth(ptr %arg.0, ptr %arg.1, ptr %arg.2)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_gather(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1 = load ptr, ptr %at.1
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  %at.3 = getelementptr %opwest_value, ptr %args, i32 3
  %arg.3 = load ptr, ptr %at.3
  %status = tail call signext i32 @conventions_bridge_gather(ptr %arg.0, ptr %arg.1, ptr %arg.2, ptr %arg.3)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_move(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1 = load ptr, ptr %at.1
  %dev = load ptr, ptr %launch
  %status = tail call signext i32 @conventions_bridge_move(ptr %arg.0, ptr %arg.1, ptr %dev)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_kinds(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1 = load ptr, ptr %at.1
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  %at.3 = getelementptr %opwest_value, ptr %args, i32 3
  %arg.3 = load ptr, ptr %at.3
  %at.4 = getelementptr %opwest_value, ptr %args, i32 4
  %arg.4 = load ptr, ptr %at.4
  %status = tail call signext i32 @conventions_bridge_kinds(ptr %arg.0, ptr %arg.1, ptr %arg.2, ptr %arg.3, ptr %arg.4)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_add(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1 = load ptr, ptr %at.1
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  %status = tail call signext i32 @conventions_bridge_add(ptr %arg.0, ptr %arg.1, ptr %arg.2)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_mix(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1.wide = load i64, ptr %at.1
  %arg.1 = trunc i64 %arg.1.wide to i16
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load double, ptr %at.2
  %at.3 = getelementptr %opwest_value, ptr %args, i32 3
  %arg.3.wide = load i64, ptr %at.3
  %arg.3 = trunc i64 %arg.3.wide to i8
  %at.4 = getelementptr %opwest_value, ptr %args, i32 4
  %arg.4 = load ptr, ptr %at.4
  %at.5 = getelementptr %opwest_value, ptr %args, i32 5
  %arg.5 = load ptr, ptr %at.5
  %at.6 = getelementptr %opwest_value, ptr %args, i32 6
  %arg.6 = load ptr, ptr %at.6
  %at.7 = getelementptr %opwest_value, ptr %args, i32 7
  %arg.7 = load ptr, ptr %at.7
  %status = tail call signext i32 @conventions_bridge_mix(ptr %arg.0, i16 zeroext %arg.1, double %arg.2, i8 zeroext %arg.3, ptr %arg.4, ptr %arg.5, ptr %arg.6, ptr %arg.7)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_launch(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1.wide = load i64, ptr %at.1
  %arg.1 = trunc i64 %arg.1.wide to i32
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  %at.3 = getelementptr %opwest_value, ptr %args, i32 3
  %arg.3 = load ptr, ptr %at.3
  %dev = load ptr, ptr %launch
  %status = tail call signext i32 @conventions_bridge_launch(ptr %arg.0, i32 signext %arg.1, ptr %arg.2, ptr %arg.3, ptr %dev)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_launch_packed(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1.wide = load i64, ptr %at.1
  %arg.1 = trunc i64 %arg.1.wide to i32
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  %at.3 = getelementptr %opwest_value, ptr %args, i32 3
  %arg.3 = load ptr, ptr %at.3
  %dev = load ptr, ptr %launch
  %status = tail call signext i32 @conventions_bridge_launch_packed(ptr %arg.0, i32 signext %arg.1, ptr %arg.2, ptr %arg.3, ptr %dev)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_total(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1 = load ptr, ptr %at.1
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  %status = tail call signext i32 @conventions_bridge_total(ptr %arg.0, ptr %arg.1, ptr %arg.2)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_negate(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  tail call void @conventions__negate(ptr %arg.0)
  ret i32 0
}
define internal signext i32 @opwest_adapter_of_label(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1.wide = load i64, ptr %at.1
  %arg.1 = trunc i64 %arg.1.wide to i16
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  tail call void @conventions_bridge_label(ptr %arg.0, i16 signext %arg.1, ptr %arg.2)
  ret i32 0
}
define internal signext i32 @opwest_adapter_of_mean(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1 = load ptr, ptr %at.1
  tail call void @conventions_bridge_mean(ptr %arg.0, ptr %arg.1)
  ret i32 0
}
define internal signext i32 @opwest_adapter_of_blur(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1.wide = load i64, ptr %at.1
  %arg.1 = trunc i64 %arg.1.wide to i8
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load double, ptr %at.2
  %at.3 = getelementptr %opwest_value, ptr %args, i32 3
  %arg.3 = load ptr, ptr %at.3
  %at.4 = getelementptr %opwest_value, ptr %args, i32 4
  %arg.4 = load ptr, ptr %at.4
  %at.5 = getelementptr %opwest_value, ptr %args, i32 5
  %arg.5 = load ptr, ptr %at.5
  %at.6 = getelementptr %opwest_value, ptr %args, i32 6
  %arg.6 = load ptr, ptr %at.6
  %at.7 = getelementptr %opwest_value, ptr %args, i32 7
  %arg.7 = load ptr, ptr %at.7
  %status = tail call signext i32 @conventions_bridge_blur(ptr %arg.0, i8 zeroext %arg.1, double %arg.2, ptr %arg.3, ptr %arg.4, ptr %arg.5, ptr %arg.6, ptr %arg.7)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_limited(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1.wide = load i64, ptr %at.1
  %arg.1 = trunc i64 %arg.1.wide to i32
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  %status = tail call signext i32 @conventions_bridge_limited(ptr %arg.0, i32 signext %arg.1, ptr %arg.2)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_turn(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1.wide = load i64, ptr %at.1
  %arg.1 = trunc i64 %arg.1.wide to i8
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  tail call void @conventions_bridge_turn(ptr %arg.0, i8 signext %arg.1, ptr %arg.2)
  ret i32 0
}
define internal signext i32 @opwest_adapter_of_shift(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1 = load ptr, ptr %at.1
  %status = tail call signext i32 @conventions_bridge_shift(ptr %arg.0, ptr %arg.1)
  ret i32 %status
}
define internal signext i32 @opwest_adapter_of_sum(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1 = load ptr, ptr %at.1
  tail call void @conventions_bridge_sum(ptr %arg.0, ptr %arg.1)
  ret i32 0
}
define internal signext i32 @opwest_adapter_of_cross(ptr %args, ptr %launch) {
entry:
  %at.0 = getelementptr %opwest_value, ptr %args, i32 0
  %arg.0 = load ptr, ptr %at.0
  %at.1 = getelementptr %opwest_value, ptr %args, i32 1
  %arg.1 = load ptr, ptr %at.1
  %at.2 = getelementptr %opwest_value, ptr %args, i32 2
  %arg.2 = load ptr, ptr %at.2
  %at.3 = getelementptr %opwest_value, ptr %args, i32 3
  %arg.3 = load ptr, ptr %at.3
  %at.4 = getelementptr %opwest_value, ptr %args, i32 4
  %arg.4 = load ptr, ptr %at.4
  %at.5 = getelementptr %opwest_value, ptr %args, i32 5
  %arg.5 = load ptr, ptr %at.5
  %at.6 = getelementptr %opwest_value, ptr %args, i32 6
  %arg.6.wide = load i64, ptr %at.6
  %arg.6 = trunc i64 %arg.6.wide to i8
  %status = tail call signext i32 @conventions_bridge_cross(ptr %arg.0, ptr %arg.1, ptr %arg.2, ptr %arg.3, ptr %arg.4, ptr %arg.5, i8 signext %arg.6)
  ret i32 %status
}
