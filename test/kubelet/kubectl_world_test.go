package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// A desk is an environment for kubectl, with a namespace.
type desk struct {
	*room
	kubectl *lab.Kubectl
	env     []string // additional environment of the client
}

// transports are kubectl's protocols for streams: the default, and the former default.
var transports = map[string][]string{
	"WebSocket": nil,
	"SPDY":      {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"},
}

// command is a kubectl in the desk's namespace, not started yet. It is killed when the
// test ends.
func (d desk) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*patience)
	d.t.Cleanup(cancel)
	cmd := d.kubectl.Command(ctx, append([]string{"--namespace=" + d.name}, args...)...)
	cmd.Env = append(cmd.Env, d.env...)
	return cmd
}

// said is the output and the exit code of a command.
type cmdResult struct {
	out, err string
	code     int
}

// with runs kubectl with an input, and returns the result.
func (d desk) with(in string, args ...string) cmdResult {
	d.t.Helper()
	cmd := d.command(args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if in != "" {
		cmd.Stdin = strings.NewReader(in)
	}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return cmdResult{out.String(), errOut.String(), exit.ExitCode()}
	}
	require.NoError(d.t, err, "kubectl %v", args)
	return cmdResult{out.String(), errOut.String(), 0}
}

// ok runs kubectl, which has to be content, and returns its output.
func (d desk) ok(args ...string) string {
	d.t.Helper()
	was := d.with("", args...)
	require.Zero(d.t, was.code, "kubectl %v: %s%s", args, was.out, was.err)
	return was.out
}

// nodeReady waits until a node exists and is ready.
func (d desk) nodeReady(name string) {
	d.t.Helper()
	for _, is := range []string{"create", "condition=Ready"} {
		d.ok("wait", "node/"+name, "--for="+is, "--timeout="+(2*patience).String())
	}
}

// sleeper creates a pod that runs until it is terminated, and waits for it.
func (d desk) sleeper(name string, script string) {
	d.t.Helper()
	d.ok("run", name, "--image="+lab.Busybox, "--restart=Never", "--command", "--", "sh", "-c", "trap 'exit 0' TERM\n"+script+"\nsleep 3600 & wait")
	d.ok("wait", "pod/"+name, "--for=condition=Ready", "--timeout="+(2*patience).String())
}

// background starts a kubectl, which is ended with the test.
func (d desk) background(args ...string) (*exec.Cmd, *output) {
	d.t.Helper()
	cmd, printed := d.command(args...), new(output)
	cmd.Stdout, cmd.Stderr = printed, printed
	require.NoError(d.t, cmd.Start())
	d.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // returns the error of the kill
	})
	return cmd, printed
}

// each runs a test over each of the transports.
func (d desk) each(test func(d desk)) {
	for name, env := range transports {
		d.t.Run(name, func(t *testing.T) {
			own := *d.room
			own.t = t
			test(desk{room: &own, kubectl: d.kubectl, env: env})
		})
	}
}

var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> \d+`)

// forwarded starts a port-forward, and returns where it listens.
func (d desk) forwarded(pod string, port int) string {
	d.t.Helper()
	_, printed := d.background("port-forward", "pod/"+pod, "--address=127.0.0.1", fmt.Sprintf(":%d", port))
	var at []string
	d.until("the port is forwarded", func() error {
		if at = forwarding.FindStringSubmatch(printed.String()); at == nil {
			return fmt.Errorf("%q", printed)
		}
		return nil
	})
	return at[1]
}

// echoes checks an echo server at an address, over many connections at once.
func echoes(t *testing.T, addr string, connections int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range connections {
		all.Go(func() {
			conn, err := net.Dial("tcp", addr)
			if !assert.NoError(t, err) {
				return
			}
			defer conn.Close()
			assert.NoError(t, conn.SetDeadline(time.Now().Add(2*patience)))
			printed := strings.Repeat(fmt.Sprintf("connection %d ", i), 1000)
			go func() { _, _ = io.WriteString(conn, printed) }()
			got := make([]byte, len(printed))
			_, err = io.ReadFull(conn, got)
			assert.NoError(t, err)
			assert.Equal(t, printed, string(got))
		})
	}
	all.Wait()
}
