package machine

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// StageContainerd links containerd 2.4 and what it runs into a new directory.
func StageContainerd(to string) error {
	from, names := filepath.Dir(lab.FindContainerd()), []string{"containerd", "containerd-shim-runc-v2", "ctr"}
	return errors.Join(labenv.Require("bash .ci/run containerd", from, names...), Stage(from, to, names))
}

// Stage links files of a directory into a new one. Links among them are kept.
func Stage(from, to string, names []string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		old, path := filepath.Join(from, name), filepath.Join(to, name)
		if target, err := os.Readlink(old); err == nil {
			if err := os.Symlink(target, path); err != nil {
				return err
			}
			continue
		}
		if err := Link(old, path); err != nil {
			return err
		}
	}
	return nil
}

// Link links a file to another name, or copies it if that is in another file system.
func Link(from, to string) error {
	if err := os.Link(from, to); err == nil {
		return nil
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(to, data, 0o755), os.Chtimes(to, info.ModTime(), info.ModTime()))
}
