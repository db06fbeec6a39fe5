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

// The suite, the kubelet and containerd have directories of a machine in their code. A mount namespace of the
// run keeps them apart from those of other programs, and its mounts end with it.
var machineDirs = []string{"/var/lib/kubelet", "/var/log/pods", "/var/log/containers", "/run/containerd"}

// isolatedVariable is set in the process that runs in a mount namespace of its own.
const isolatedVariable = "E2ENODE_ISOLATED"

func isolated() bool { return os.Getenv(isolatedVariable) != "" }

// isolate runs this program in a new mount namespace, and returns its exit code. Mounts propagate
// within it, as pods may require, and not out of it.
func isolate(ctx context.Context, out io.Writer) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	const script = `mount --make-rshared / && exec "$0" "$@"`
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", script, self}, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), isolatedVariable+"=1")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Minute // it removes the pods
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// ownMachineDirs mounts directories below dir on those of the machine.
func ownMachineDirs(dir string) error {
	for _, path := range machineDirs {
		own := filepath.Join(dir, "machine", path)
		if err := errors.Join(os.MkdirAll(own, 0o755), os.MkdirAll(path, 0o755)); err != nil {
			return err
		}
		// Otherwise what is mounted in the one would appear in the other as well.
		for _, args := range [][]string{{"--bind", own, path}, {"--make-private", path}, {"--make-shared", path}} {
			if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
				return fmt.Errorf("mount %s: %w: %s", path, err, out)
			}
		}
	}
	return nil
}

// removeMachineDirs unmounts them, and what is mounted in them.
func removeMachineDirs() error {
	for _, path := range machineDirs {
		if out, err := exec.Command("umount", "--recursive", "--lazy", path).CombinedOutput(); err != nil {
			return fmt.Errorf("umount %s: %w: %s", path, err, out)
		}
	}
	return nil
}
