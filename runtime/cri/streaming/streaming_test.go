package streaming_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
)

const success = `{"metadata":{},"status":"Success"}`

func TestExecPassesStreamsAndTheExitCode(t *testing.T) {
	u := serveSPDY(t, 4, func(s session) {
		input, _ := io.ReadAll(s.streams["stdin"])
		_, _ = s.streams["stdout"].Write(bytes.ToUpper(input))
		_, _ = s.streams["stderr"].Write([]byte("oops"))
		_, _ = s.streams["error"].Write([]byte(`{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"42"}]}}`))
	})
	big := strings.Repeat("0123456789abcdef", 20000) // many frames
	var out, errOut bytes.Buffer
	code, err := new(streaming.Client).Exec(t.Context(), u, runtime.Streams{Stdin: strings.NewReader(big), Stdout: &out, Stderr: &errOut})
	require.NoError(t, err)
	assert.EqualValues(t, 42, code)
	assert.Equal(t, strings.ToUpper(big), out.String())
	assert.Equal(t, "oops", errOut.String())
}

func TestAttachOpensATerminalWithItsSize(t *testing.T) {
	sizes := make(chan string, 2)
	u := serveSPDY(t, 4, func(s session) { // error, stdin, stdout, resize
		decoder := json.NewDecoder(s.streams["resize"])
		for range 2 {
			var size map[string]int
			if decoder.Decode(&size) != nil {
				return
			}
			text, _ := json.Marshal(size)
			sizes <- string(text)
		}
		_, _ = s.streams["stdout"].Write([]byte("$ "))
		_, _ = s.streams["error"].Write([]byte(success))
	})
	input, typing := io.Pipe() // without input
	defer typing.Close()
	resize := make(chan runtime.TerminalSize, 2)
	resize <- runtime.TerminalSize{Width: 80, Height: 25}
	resize <- runtime.TerminalSize{Width: 132, Height: 50}
	var out, errOut bytes.Buffer
	require.NoError(t, new(streaming.Client).Attach(t.Context(), u, runtime.Streams{
		Stdin: input, Stdout: &out, Stderr: &errOut, TTY: true, Resize: resize,
	}))
	assert.Equal(t, "$ ", out.String())
	assert.Empty(t, errOut.String())
	assert.Equal(t, `{"Height":25,"Width":80}`, <-sizes)
	assert.Equal(t, `{"Height":50,"Width":132}`, <-sizes)
}

func TestPortForwardCopiesBothWays(t *testing.T) {
	u := serveSPDY(t, 2, func(s session) {
		data := s.streams["data"]
		if data.Headers().Get("port") != "8080" || data.Headers().Get("requestID") != s.streams["error"].Headers().Get("requestID") {
			return
		}
		_, _ = data.Write([]byte("hello "))
		_, _ = io.Copy(data, data) // until the client closes its side
	})
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- new(streaming.Client).PortForward(t.Context(), u, 8080, theirs) }()
	go func() { _, _ = io.WriteString(ours, "you") }()
	received := make([]byte, 9)
	_, err := io.ReadFull(ours, received)
	require.NoError(t, err)
	assert.Equal(t, "hello you", string(received))
	ours.Close()
	require.NoError(t, <-done)
}

func TestPortForwardReturnsTheServersError(t *testing.T) {
	u := serveSPDY(t, 2, func(s session) {
		_ = s.streams["data"].Close()
		<-time.After(50 * time.Millisecond) // as containerd, which closes it first
		_, _ = s.streams["error"].Write([]byte("dial tcp 127.0.0.1:80: connection refused"))
	})
	ours, theirs := net.Pipe()
	err := new(streaming.Client).PortForward(t.Context(), u, 80, theirs)
	require.EqualError(t, err, "streaming: forward to port 80: dial tcp 127.0.0.1:80: connection refused")
	_, err = ours.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "the connection was closed")
}

func TestTheServersStatusIsTheOutcome(t *testing.T) {
	exit := func(code string) string {
		return `{"status":"Failure","reason":"NonZeroExitCode","message":"m","details":{"causes":[{"reason":"ExitCode","message":"` + code + `"}]}}`
	}
	for name, tc := range map[string]struct {
		text string
		code int32
		fail string
	}{
		"success":                {text: success},
		"an exit code":           {text: exit("137"), code: 137},
		"a failure":              {text: `{"status":"Failure","reason":"InternalError","message":"no such file"}`, fail: "no such file"},
		"a failure without word": {text: `{"status":"Failure"}`, fail: "without an error message"},
		"no code":                {text: `{"status":"Failure","reason":"NonZeroExitCode","message":"m","details":null}`, fail: "m"},
		"a wrong code":           {text: exit("x"), fail: `exit code "x"`},
		"a code of 0":            {text: exit("0"), fail: `exit code "0"`},
		"too big a code":         {text: exit("99999999999"), fail: "exit code"},
		"nothing":                {text: "", fail: "unexpected EOF"},
		"no JSON":                {text: "command not found", fail: `invalid status: "command not found"`},
		"another JSON":           {text: `{"a":1}`, fail: "invalid status"},
	} {
		t.Run(name, func(t *testing.T) {
			u := serveSPDY(t, 2, func(s session) { _, _ = s.streams["error"].Write([]byte(tc.text)) })
			code, err := new(streaming.Client).Exec(t.Context(), u, runtime.Streams{Stdout: io.Discard})
			if tc.fail != "" {
				require.ErrorContains(t, err, tc.fail)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.code, code)
		})
	}
}

func TestAServerOnAnotherMachineIsNotConnectedTo(t *testing.T) {
	at := &url.URL{Scheme: "http", Host: "192.0.2.1:80", Path: "/secret"} // reserved for documentation
	calls := map[string]func(*streaming.Client, context.Context) error{
		"exec": func(c *streaming.Client, ctx context.Context) error {
			_, err := c.Exec(ctx, at, runtime.Streams{})
			return err
		},
		"attach": func(c *streaming.Client, ctx context.Context) error { return c.Attach(ctx, at, runtime.Streams{}) },
		"port-forward": func(c *streaming.Client, ctx context.Context) error {
			here, _ := net.Pipe()
			return c.PortForward(ctx, at, 80, here)
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			err := call(new(streaming.Client), t.Context())
			require.ErrorContains(t, err, "192.0.2.1, which is not this machine")
			assert.NotContains(t, err.Error(), "secret")

			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, call(&streaming.Client{Hosts: []string{"192.0.2.1"}}, ctx), context.Canceled, "it is allowed, and tried")
		})
	}
}

func TestAServerThatCannotBeReachedIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	listener.Close()
	_, err = new(streaming.Client).Exec(t.Context(), &url.URL{Scheme: "http", Host: address, Path: "/exec/secret"}, runtime.Streams{})
	require.ErrorContains(t, err, address)
	assert.NotContains(t, err.Error(), "secret", "the token is secret")

	_, err = new(streaming.Client).Exec(t.Context(), &url.URL{Scheme: "ftp", Host: address}, runtime.Streams{})
	require.ErrorContains(t, err, `scheme "ftp"`)

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	_, err = new(streaming.Client).Exec(ctx, &url.URL{Scheme: "http", Host: address}, runtime.Streams{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
