// Package machine runs a program in an emulated machine with cgroup v2, in which nothing of the machine that it runs on
// is used: Debian's kernel, with systemd or without, a disk, processors, memory and swap of its own.
//
// The root file system is made of Debian's packages, once, and kept in the directory modern of the cache of .ci/run.
// The emulation needs no hardware virtualization, which machines in a cloud seldom have, and is 13 to 42 times slower
// than this machine.
package machine
