package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// entries are the programs that an envtest starts.
var entries = []string{"kube-apiserver", "etcd", "kubectl"}

// assets creates links to this program with the names of the entries.
func assets(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("testcluster assets", flag.ContinueOnError)
	dir := flags.String("dir", "", "`directory` of the entries; default: kubeparts/testcluster in the cache directory of the user")
	if err := flags.Parse(args); err != nil {
		return err
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return err
	}
	if *dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("%w: set --dir", err)
		}
		*dir = filepath.Join(cache, "kubeparts", "testcluster")
	}
	if *dir, err = filepath.Abs(*dir); err != nil {
		return err
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return fmt.Errorf("%w: set --dir to a directory that can be written", err)
	}
	for _, name := range entries {
		if err := link(self, filepath.Join(*dir, name)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, *dir)
	return err
}

// link makes an entry start the program self. An entry that does already is kept, and others
// are replaced at once, so that tests of several packages can create them at the same time.
func link(self, entry string) error {
	if runtime.GOOS == "windows" {
		entry += ".exe"
	}
	if at, err := filepath.EvalSymlinks(entry); err == nil && at == self {
		return nil
	}
	temporary := fmt.Sprintf("%s.%d", entry, os.Getpid())
	err := os.Symlink(self, temporary)
	if err != nil {
		err = os.Link(self, temporary) // Windows permits links to files, but not symbolic ones
	}
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, entry); err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return nil
}

// kubectl runs the kubectl of the PATH.
func kubectl(ctx context.Context, args []string) error {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		return errors.New("testcluster has no kubectl of its own, and there is none in the PATH: install it (https://kubernetes.io/docs/tasks/tools)")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if one, err := os.Stat(path); err == nil {
		if other, err := os.Stat(self); err == nil && os.SameFile(one, other) {
			return errors.New("the kubectl in the PATH is testcluster: remove the directory of its assets from the PATH")
		}
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
