//go:build !unix

package main

import (
	"fmt"
	"syscall"
)

// The suite runs on Linux only.
var standIns map[string]func(args []string) error

const (
	unitsVariable = "E2ENODE_UNITS"
	pathVariable  = "E2ENODE_PATH"
)

func exitCode(error) int { return 2 }

func stopUnits(units string) error {
	return fmt.Errorf("stop the units of %s: not on this system", units)
}

func ownGroup() *syscall.SysProcAttr { return nil }

func endGroup(pid int) error { return fmt.Errorf("end process group %d: not on this system", pid) }
