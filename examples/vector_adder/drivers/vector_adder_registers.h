/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The registers of the device: for the driver and the emulated device.
 */
#ifndef VECTOR_ADDER_REGISTERS_H_
#define VECTOR_ADDER_REGISTERS_H_

/** Writes start or abort a job. */
#define REG_CONTROL        0x00U
#define REG_CONTROL_ENABLE 0x1U
#define REG_CONTROL_START  0x2U
#define REG_CONTROL_ABORT  0x4U

/** Read only. The device interrupts when it sets DONE. */
#define REG_STATUS       0x04U
#define REG_STATUS_BUSY  0x1U
#define REG_STATUS_DONE  0x2U
#define REG_STATUS_ERROR 0x4U

/** A write clears DONE and ERROR. */
#define REG_ACKNOWLEDGE 0x08U

/** The address of the descriptor: the low and the high word. */
#define REG_DESCRIPTOR 0x10U

/** The size of the registers. */
#define REG_REGISTERS 0x18U

#endif /* VECTOR_ADDER_REGISTERS_H_ */
