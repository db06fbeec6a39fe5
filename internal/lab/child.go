package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A child is a program of the lab that can be killed and restarted. Its output is written
// to a file.
type child struct {
	name   string
	binary string
	args   []string
	env    []string // in addition to the lab's own
	log    string

	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has been waited for; nil before the first start
}

func (c *child) start() error {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(c.binary, c.args...)
	cmd.Dir = filepath.Dir(c.log)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	c.cmd, c.exited = cmd, exited
	go func() {
		defer close(exited)
		cmd.Wait() // the error is in its log
	}()
	return nil
}

func (c *child) running() bool {
	if c.exited == nil {
		return false
	}
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// kill kills the program and waits until it has exited.
func (c *child) kill() error {
	if !c.running() {
		return nil
	}
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-c.exited
	return nil
}

// await calls check until it returns nil. It returns check's last error when the child
// exits or ctx is done.
func (c *child) await(ctx context.Context, what string, check func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return fmt.Errorf("%s exited while the lab waited for %s: %w", c.name, what, err)
		case <-ctx.Done():
			return fmt.Errorf("%s: no %s in time: %w", c.name, what, err)
		case <-tick.C:
		}
	}
}

// tail returns the last lines of the output of all starts.
func (c *child) tail(lines int) string {
	data, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(data), lines, func(string) bool { return true })
}

// problems returns the last lines of the output of all starts that report more than routine,
// so that a failed test's own messages are not lost among them.
func (c *child) problems(lines int) string {
	data, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(data), lines, func(line string) bool { return !routine.MatchString(line) })
}

// routine matches log lines of the levels debug and info: of containerd, etcd and Kubernetes.
var routine = regexp.MustCompile(`level=(info|debug) |"level":"(info|debug)"|^I\d{4} `)

func lastLines(output string, lines int, keep func(line string) bool) string {
	kept := slices.DeleteFunc(strings.Split(strings.TrimSpace(output), "\n"), func(line string) bool { return !keep(line) })
	return strings.Join(kept[max(0, len(kept)-lines):], "\n")
}
