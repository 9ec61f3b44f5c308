/* SPDX-License-Identifier: Apache-2.0 */
/* The output of walk.c: port_hosted.c with a C library, port_bare.c through semihosting. */
#ifndef PORT_H_
#define PORT_H_

/** Write text, ended by a null byte. */
void port_write(const char *text);

/** The program; called by the port's start code. */
void walk(void);

#endif /* PORT_H_ */
