package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// isolatedVariable is set in the process that has mounts of its own.
const isolatedVariable = "CONFORMANCE_ISOLATED"

func isolated() bool { return os.Getenv(isolatedVariable) != "" }

// isolate runs this program again with mounts of its own, and returns its exit code.
func isolate(ctx context.Context, out io.Writer) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), isolatedVariable+"=1")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Minute // it removes the pods
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// machineDirs are the directories of the machine that tests have in their code.
var machineDirs = []string{machineRoot, "/run/cdi"}

// ownMachineDirs mounts directories below dir on those of the machine, for this process and those
// that it starts.
func ownMachineDirs(dir string) error {
	for _, path := range machineDirs {
		own := filepath.Join(dir, "machine", filepath.Base(path))
		if err := errors.Join(os.MkdirAll(own, 0o755), os.MkdirAll(path, 0o755)); err != nil {
			return err
		}
		// Otherwise mounts in the one would appear in the other as well.
		for _, m := range []struct {
			from  string
			flags uintptr
		}{{own, syscall.MS_BIND}, {"", syscall.MS_PRIVATE}, {"", syscall.MS_SHARED}} {
			if err := syscall.Mount(m.from, path, "", m.flags, ""); err != nil {
				return fmt.Errorf("mount %s: %w", path, err)
			}
		}
	}
	return nil
}

// removeMachineDirs unmounts them.
func removeMachineDirs() error {
	var errs []error
	for _, path := range machineDirs {
		errs = append(errs, syscall.Unmount(path, syscall.MNT_DETACH))
	}
	return errors.Join(errs...)
}
