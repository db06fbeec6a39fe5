//go:build !unix

package isolate

import (
	"errors"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func endGroup(int) error { return errors.ErrUnsupported }
