package fakecri_test

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// shell implements the commands of the script.
func shell(ctx context.Context, cmd []string, s runtime.Streams) (int32, error) {
	switch line := strings.Join(cmd, " "); line {
	case "true":
		return 0, nil
	case "false":
		return 1, nil
	case "echo hi":
		_, err := io.WriteString(s.Stdout, "hi\n")
		return 0, err
	case strings.Join(execs["fail 7"], " "):
		return 7, nil
	case strings.Join(execs["hang"], " "):
		<-ctx.Done()
		return 0, ctx.Err()
	case strings.Join(execs["flood"], " "):
		_, err := io.WriteString(s.Stdout, strings.Repeat("\x00", 17<<20))
		return 0, err
	default:
		return 0, io.ErrUnexpectedEOF // any error: there is no such command
	}
}

// scriptedFake returns a fake whose containers behave like the commands.
func scriptedFake(t *testing.T) *fakecri.Runtime {
	t.Helper()
	fake, err := fakecri.New(fakecri.Config{
		WriteLogs: true,
		Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{
			"long":      {Exec: shell},
			"stubborn":  {Exec: shell, IgnoreTERM: true, Logs: []fake.LogLine{{Text: "ignores TERM"}}},
			"exit0":     {Exit: &fake.Exit{After: 5 * time.Millisecond}},
			"exit3":     {Exit: &fake.Exit{After: 5 * time.Millisecond, Code: 3}},
			"nocommand": {Fail: &fake.Failure{Reason: "StartError", Message: `exec: "/no/such/command": no such file or directory`}},
		}},
		Images: map[string]fake.Image{
			busybox:                  {Present: true},
			"kubeparts.test/pause:1": {Present: true},
			"127.0.0.1:5000/private": {Auth: "bob:right"},
			"127.0.0.1:5000/absent":  {Absent: true},
		},
	})
	require.NoError(t, err)
	return fake
}

// onTheWayOnly are the calls that the layers between a client and the runtime
// reject.
var onTheWayOnly = known{
	"exec-sync c 0 flood":    {answer: "OK 16 MiB", why: "no message has a limit"},
	"exec c true nostreams":  {answer: "OK a URL", why: "the server of streams checks that"},
	"exec c true tty-stderr": {answer: "OK a URL", why: "the server of streams checks that"},
	"attach c nostreams":     {answer: "OK a URL", why: "the server of streams checks that"},
}

// In virtual time, without a socket.
func TestTheFakeRespondsAsContainerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := scriptedFake(t)
		script, _ := readScript(t)
		s := &subject{runtime: fake, images: fake, registry: "127.0.0.1:5000", password: "right", logs: t.TempDir(), inProcess: true}
		diffs := differences(script, s.play(t, script), onTheWayOnly)
		assert.Empty(t, diffs, strings.Join(diffs, "\n"))
		t.Logf("%d calls", len(script))
	})
}

// Through a socket, with the official client.
func TestTheServedFakeRespondsAsContainerd(t *testing.T) {
	fake := scriptedFake(t)
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := serve.Listen(t.Context(), socket)
	require.NoError(t, err)
	server, err := serve.New(serve.Config{Listener: listener, Runtime: fake, Images: fake, Streams: fake})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	defer func() {
		cancel()
		assert.NoError(t, <-ended)
	}()
	client, err := remote.Dial(t.Context(), socket, remote.Config{Timeout: time.Minute})
	require.NoError(t, err)
	defer client.Close(context.Background())

	script, _ := readScript(t)
	s := &subject{runtime: client.Runtime, images: client.Images, registry: "127.0.0.1:5000", password: "right", logs: t.TempDir()}
	diffs := differences(script, s.play(t, script), nil)
	assert.Empty(t, diffs, strings.Join(diffs, "\n"))
	t.Logf("%d calls", len(script))
}
