//go:build !unix

package lane

import (
	"fmt"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func endGroup(pid int) error { return fmt.Errorf("end process group %d: not on this system", pid) }
