//go:build !linux

package lab

import (
	"errors"
	"os"
)

// These functions are never called: Containerd skips the test on other systems.

var errNotLinux = errors.New("lab: not on this system")

func suspend(*os.Process) error { return errNotLinux }
func resume(*os.Process) error  { return errNotLinux }
func sweep(string) error        { return errNotLinux }
func sweepDead(string) error    { return errNotLinux }
