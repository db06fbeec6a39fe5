package runtimetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// logRequirements are the requirements of [runtime.LogReader] and [runtime.LogRotator].
var logRequirements = []requirement{
	{
		name:     "LogPathIsHostFile",
		text:     "LogPath returns an absolute path on this host of a file with the output of the container in the CRI's format; ContainerStatus.LogPath is the same. It does not change when the container exits.",
		contract: "LogReader.LogPath, ContainerStatus.LogPath",
		cause:    "the path is inside a virtual machine, or lines lack the time and the stream",
		needs:    []string{"LogReader", "Containers.Prints"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("prints", t.suite.Containers.Prints("hello, log")))
			c := t.container(t.up(pod), "prints")
			path := t.logPath(c.ID)
			if !filepath.IsAbs(path) || path != c.LogPath {
				t.Errorf("LogPath is %q, that of the status is %q", path, c.LogPath)
			}
			text := t.logHas(path, "hello, log")
			for line := range strings.Lines(text) {
				if !criLine(line) {
					t.Errorf("not a line in the CRI's format: %q", line)
				}
			}
			t.kill(pod, nil)
			if path := t.logPath(c.ID); path != c.LogPath {
				t.Errorf("after the exit of the container LogPath is %q", path)
			}
			t.logHas(path, "hello, log")
		},
	},
	{
		name:     "EachInstanceHasOwnLog",
		text:     "Each instance has a log of its own, so that the previous one's can be read while the next one runs.",
		contract: "LogReader.LogPath; package runtime, Vocabulary",
		cause:    "logs are named after the container, not after its instance",
		needs:    []string{"LogReader"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1)), named("long", t.suite.Containers.Long))
			s := t.syncUntil(pod, "flappy was restarted", restarted("flappy"))
			seen := map[string]string{}
			for _, c := range s.Containers {
				path := t.logPath(c.ID)
				if other, ok := seen[path]; ok {
					t.Errorf("%s and %s have the same log, %s", c.ID, other, path)
				}
				seen[path] = c.ID
			}
		},
	},
	{
		name:     "LogOfUnknownContainerIsNotFound",
		text:     "LogPath and ReopenLog return ErrNotFound for a container that does not exist.",
		contract: "LogReader, LogRotator; errors of package runtime",
		cause:    "the path is derived from the ID without checking that the container exists",
		needs:    []string{"LogReader"},
		check: func(t *checkT) {
			id := t.running().ID + "-not"
			if path, err := as[runtime.LogReader](t).LogPath(t.Context(), id); !errors.Is(err, runtime.ErrNotFound) {
				t.unlessUnsupported(err)
				t.Errorf("LogPath of a container that does not exist returned %q, %v", path, err)
			}
			if rotator, ok := compose.As[runtime.LogRotator](t.rt); ok {
				if err := rotator.ReopenLog(t.Context(), id); !errors.Is(err, runtime.ErrNotFound) {
					t.unlessUnsupported(err)
					t.Errorf("ReopenLog of a container that does not exist returned %v", err)
				}
			}
		},
	},
	{
		name:     "LogIsReopened",
		text:     "After a log was renamed, ReopenLog makes the runtime write to a new file at the container's log path; the old file keeps its contents.",
		contract: "LogRotator.ReopenLog",
		cause:    "the runtime keeps the old file open, and the new one remains empty",
		needs:    []string{"LogReader", "LogRotator", "Containers.Prints"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("prints", t.suite.Containers.Prints("hello, log")))
			id := t.container(t.up(pod), "prints").ID
			path := t.logPath(id)
			t.logHas(path, "hello, log")
			old := path + ".old"
			if err := os.Rename(path, old); err != nil {
				t.Fatalf("rename the log: %v", err)
			}
			t.Cleanup(func() { _ = os.Remove(old) })
			if err := as[runtime.LogRotator](t).ReopenLog(t.Context(), id); err != nil {
				t.unlessUnsupported(err)
				t.Fatalf("ReopenLog: %v", err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("after ReopenLog the log does not exist: %v", err)
			}
			t.logHas(old, "hello, log")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := as[runtime.LogRotator](t).ReopenLog(ctx, id); err != nil && !ended(err) {
				t.Errorf("with a canceled context, ReopenLog returned %v", err)
			}
		},
	},
}

func (t *checkT) logPath(id string) string {
	t.Helper()
	path, err := as[runtime.LogReader](t).LogPath(t.Context(), id)
	if err != nil {
		t.unlessUnsupported(err)
		t.Fatalf("LogPath: %v", err)
	}
	return path
}

// logHas waits until the file has the text, and returns all of it.
func (t *checkT) logHas(path, want string) string {
	t.Helper()
	for begun := time.Now(); ; t.pause(t.suite.Timing.PollInterval) {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), want) && strings.HasSuffix(string(text), "\n") {
			return string(text)
		}
		if time.Since(begun) > t.suite.Timing.Timeout {
			t.Fatalf("%q is not in %s, but %q (%v)", want, path, text, err)
		}
	}
}

// criLine reports whether the line begins with a time, a stream and a tag.
func criLine(line string) bool {
	part := strings.SplitN(line, " ", 4)
	if len(part) != 4 {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, part[0])
	return err == nil && (part[1] == "stdout" || part[1] == "stderr") && (part[2] == "F" || part[2] == "P")
}

// unlessUnsupported skips the check if err is ErrUnsupported: the runtime has the
// method but does not support it.
func (t *checkT) unlessUnsupported(err error) {
	t.Helper()
	if errors.Is(err, runtime.ErrUnsupported) {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("runtime.ErrUnsupported is not errors.ErrUnsupported: %v", err)
		}
		t.Skipf("not supported: %v", err)
	}
}
