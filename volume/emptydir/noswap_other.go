//go:build !linux

package emptydir

func kernelNoSwap() bool { return false }
