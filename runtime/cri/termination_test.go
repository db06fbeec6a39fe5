package cri

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestTerminationMessages(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	line := func(text string) string { return "2026-01-01T00:00:00.000000000Z stderr F " + text + "\n" }
	log := write("0.log", line("starting")+"2026-01-01T00:00:00Z stdout P half a\n"+"2026-01-01T00:00:00Z stdout F  line\n"+line("panic: bad"))
	message, empty := write("message", "out of luck"), write("empty", "")
	long := write("long", strings.Repeat("x", 5000)+"end")
	for _, tc := range []struct {
		name    string
		file    string
		policy  string
		code    int32
		reason  string
		runtime string
		want    string
	}{
		{"nothing", empty, "File", 1, "Error", "", ""},
		{"the file", message, "File", 0, "Completed", "", "out of luck"},
		{"after the runtime's message rt-127", message, "File", 1, "Error", "oom", "oom: out of luck"},
		{"the end of a long file rt-125", long, "File", 0, "Completed", "", strings.Repeat("x", 4093) + "end"},
		{"no log unless asked for", empty, "File", 1, "Error", "", ""},
		{"the log rt-126", empty, "FallbackToLogsOnError", 1, "Error", "", "starting\nhalf a line\npanic: bad\n"},
		{"the log without a file", filepath.Join(dir, "none"), "FallbackToLogsOnError", 1, "Error", "", "starting\nhalf a line\npanic: bad\n"},
		{"the file comes first", message, "FallbackToLogsOnError", 1, "Error", "", "out of luck"},
		{"success needs no explanation", empty, "FallbackToLogsOnError", 0, "Completed", "", ""},
		{"it never ran", empty, "FallbackToLogsOnError", 128, "ContainerCannotRun", "no such file", "no such file"},
		{"a directory is no message", dir, "File", 1, "Error", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, terminationMessage(&runtimeapi.ContainerStatus{
				ExitCode: tc.code, Reason: tc.reason, Message: tc.runtime, LogPath: log,
				Annotations: map[string]string{podconfig.AnnotationMessagePath: "/dev/log", podconfig.AnnotationMessagePolicy: tc.policy},
				Mounts:      []*runtimeapi.Mount{{ContainerPath: "/else", HostPath: message}, {ContainerPath: "/dev/log", HostPath: tc.file}},
			}))
		})
	}
}

// A container can write a message file of any size, and its log may have been replaced:
// reading them needs little memory and does not block.
func TestHugeMessagesAndLogsNeedLittleMemory(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("truncating allocates the space there")
	}
	dir := t.TempDir()
	sparse := func(name string, size int64, end string) string {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte(end), size-int64(len(end)))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return path
	}
	message := sparse("message", 8<<40, "the end")
	log := sparse("0.log", 10<<30, "\n2026-01-01T00:00:00Z stdout F last line\n")
	fifo := Mkfifo(t, dir)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(message, link))
	for name, tc := range map[string]struct {
		file, log string
		want      func(t *testing.T, message string)
	}{
		"message": {message, log, func(t *testing.T, m string) {
			assert.Len(t, m, maxMessage)
			assert.True(t, strings.HasSuffix(m, "the end"))
		}},
		"log":               {filepath.Join(dir, "none"), log, func(t *testing.T, m string) { assert.Equal(t, "last line\n", m) }},
		"FIFOs":             {fifo, fifo, func(t *testing.T, m string) { assert.Empty(t, m) }},
		"message is a link": {link, filepath.Join(dir, "none"), func(t *testing.T, m string) { assert.Empty(t, m, "it may lead anywhere") }},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			got := terminationMessage(&runtimeapi.ContainerStatus{
				ExitCode: 1, Reason: "Error", LogPath: tc.log,
				Annotations: map[string]string{podconfig.AnnotationMessagePath: "/dev/log", podconfig.AnnotationMessagePolicy: "FallbackToLogsOnError"},
				Mounts:      []*runtimeapi.Mount{{ContainerPath: "/dev/log", HostPath: tc.file}},
			})
			goruntime.ReadMemStats(&after)
			tc.want(t, got)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20), "bytes allocated")
		})
	}
}

func TestWhereATerminationMessageIs(t *testing.T) {
	dir := t.TempDir()
	message, log := filepath.Join(dir, "message"), filepath.Join(dir, "0.log")
	require.NoError(t, os.WriteFile(message, []byte("out of luck"), 0o644))
	require.NoError(t, os.WriteFile(log, []byte("2026-01-01T00:00:00Z stderr F panic: bad\n"), 0o644))
	for name, tc := range map[string]struct{ path, policy, want string }{
		"an absolute path":             {"/dev/log", "File", "out of luck"},
		"a relative path":              {"dev/log", "File", "out of luck"},
		"no path":                      {"", "File", ""},
		"no path, but the log":         {"", "FallbackToLogsOnError", "panic: bad\n"},
		"another path, and the log":    {"/else", "FallbackToLogsOnError", "panic: bad\n"},
		"no path, and no known policy": {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if goruntime.GOOS == "windows" {
				t.Skip("paths are those of Linux")
			}
			assert.Equal(t, tc.want, terminationMessage(&runtimeapi.ContainerStatus{
				ExitCode: 1, Reason: "Error", LogPath: log,
				Annotations: map[string]string{podconfig.AnnotationMessagePath: tc.path, podconfig.AnnotationMessagePolicy: tc.policy},
				Mounts:      []*runtimeapi.Mount{{ContainerPath: "/dev/log", HostPath: message}},
			}))
		})
	}
}

func TestTheLogFallbackHasTwoLimits(t *testing.T) { // rt-126
	var log strings.Builder
	for i := range 200 {
		fmt.Fprintf(&log, "2026-01-01T00:00:00Z stdout F %d\n", i)
	}
	lines := strings.Split(strings.TrimSpace(lastLines([]byte(log.String()))), "\n")
	assert.Len(t, lines, 80)
	assert.Equal(t, "199", lines[79])
	assert.Len(t, lastLines([]byte("2026-01-01T00:00:00Z stdout F "+strings.Repeat("x", 9000)+"\n")), 2048)
	assert.Empty(t, lastLines([]byte("cut mid-line")))
}

func FuzzLastLines(f *testing.F) {
	f.Add([]byte("2026-01-01T00:00:00Z stdout F text\n"))
	f.Add([]byte("a b P \n\n\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		assert.LessOrEqual(t, len(lastLines(log)), maxMessage)
	})
}

// Whatever a container leaves in its message and its log, the message is bounded.
func FuzzTerminationMessage(f *testing.F) {
	f.Add([]byte("out of luck"), []byte(""))
	f.Add([]byte(""), []byte("2026-01-01T00:00:00Z stdout F text\n"))
	f.Add(bytes.Repeat([]byte{0}, 5000), []byte("P\n"))
	f.Fuzz(func(t *testing.T, message, log []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "message"), message, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "0.log"), log, 0o600))
		got := terminationMessage(&runtimeapi.ContainerStatus{
			ExitCode: 1, Reason: "Error", LogPath: filepath.Join(dir, "0.log"),
			Annotations: map[string]string{podconfig.AnnotationMessagePath: "/m", podconfig.AnnotationMessagePolicy: "FallbackToLogsOnError"},
			Mounts:      []*runtimeapi.Mount{{ContainerPath: "/m", HostPath: filepath.Join(dir, "message")}},
		})
		assert.LessOrEqual(t, len(got), maxMessage)
		if len(message) > 0 {
			assert.Equal(t, string(message[max(len(message)-maxMessage, 0):]), got)
		}
	})
}
