package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A commit is the commit that is released: HEAD of a repository.
type commit struct {
	repository string
	hash       string
	time       time.Time // that of all files
}

func readCommit(ctx context.Context, repository string) (commit, error) {
	c := commit{repository: repository}
	out, err := c.git(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return c, err
	}
	hash, seconds, _ := strings.Cut(strings.TrimSpace(out), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	c.hash, c.time = hash, time.Unix(unix, 0).UTC()
	return c, err
}

// file returns a file of the commit.
func (c commit) file(ctx context.Context, path string) (string, error) {
	return c.git(ctx, "show", c.hash+":"+path)
}

// export writes the files of the commit to a directory, without what git ignores.
func (c commit) export(ctx context.Context, dir string) error {
	archive := dir + ".tar"
	if _, err := c.git(ctx, "archive", "--output", archive, c.hash); err != nil {
		return err
	}
	return errors.Join(os.Mkdir(dir, 0o755), command(ctx, dir, nil, "tar", "-xf", archive), os.Remove(archive))
}

func (c commit) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = c.repository, &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}

// tag makes the tags of all modules.
func (c commit) tag(ctx context.Context, version string) error {
	for _, name := range tags(version) {
		if _, err := c.git(ctx, "tag", "--annotate", "--message", "kubeparts "+name, name, c.hash); err != nil {
			return err
		}
	}
	return nil
}

// tags returns the tags of a version. Go finds a nested module by a tag with its directory's name.
func tags(version string) []string {
	var names []string
	for _, module := range modules {
		names = append(names, strings.TrimPrefix(module+"/"+version, "/"))
	}
	return names
}

// tagCommands are the commands that make and push the tags.
func tagCommands(version, hash string) string {
	var text strings.Builder
	for _, name := range tags(version) {
		fmt.Fprintf(&text, "  git tag --annotate --message 'kubeparts %s' %s %.12s\n", name, name, hash)
	}
	fmt.Fprintf(&text, "  git push --atomic origin %s\n", strings.Join(tags(version), " "))
	return text.String()
}

// command runs a program and fails with its output.
func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
