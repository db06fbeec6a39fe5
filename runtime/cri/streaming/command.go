package streaming

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/kubeparts/kubeparts/runtime"
)

// Exec runs the command of the URL and returns its exit code. The URL must have been
// requested with s.Options. See [runtime.StreamExecer].
func (c *Client) Exec(ctx context.Context, u *url.URL, s runtime.Streams) (int32, error) {
	code, err := c.command(ctx, u, s)
	if err != nil {
		return code, fmt.Errorf("streaming: exec: %w", err)
	}
	return code, nil
}

// Attach connects to the container of the URL until it exits. The URL must have been
// requested with s.Options. See [runtime.Attacher].
func (c *Client) Attach(ctx context.Context, u *url.URL, s runtime.Streams) error {
	if _, err := c.command(ctx, u, s); err != nil {
		return fmt.Errorf("streaming: attach: %w", err)
	}
	return nil
}

// command copies the streams until the server reports the exit.
func (c *Client) command(ctx context.Context, u *url.URL, s runtime.Streams) (code int32, err error) {
	err = c.session(ctx, u, commandProtocol, func(m *mux) (func() error, error) {
		want := s.Options()
		var outcome, stdin, stdout, stderr, resize *stream
		for _, one := range []struct {
			stream **stream
			kind   string
			wanted bool
			reads  bool
		}{
			{&outcome, "error", true, true}, {&stdin, "stdin", want.Stdin, false}, {&stdout, "stdout", want.Stdout, true},
			{&stderr, "stderr", want.Stderr, true}, {&resize, "resize", want.TTY, false},
		} {
			if !one.wanted {
				continue
			}
			opened, err := m.open(http.Header{headerStreamType: {one.kind}}, one.reads)
			if err != nil {
				return nil, err
			}
			*one.stream = opened
		}
		return func() error {
			done := make(chan struct{})
			defer close(done)
			if stdin != nil {
				go send(stdin, s.Stdin)
			}
			if resize != nil && s.Resize != nil {
				go sendSizes(resize, s.Resize, done)
			}
			var outputs sync.WaitGroup
			for _, out := range []struct {
				from *stream
				to   io.Writer
			}{{stdout, s.Stdout}, {stderr, s.Stderr}} {
				if out.from != nil {
					outputs.Go(func() { receive(out.to, out.from) })
				}
			}
			defer outputs.Wait()
			var err error
			code, err = outcomeOf(outcome)
			if err != nil {
				m.close() // no further frames are expected
			}
			return err
		}, nil
	})
	return code, err
}

// send copies the input and closes the stream at its end.
func send(to *stream, from io.Reader) {
	if _, err := io.Copy(to, from); err == nil {
		_ = to.closeWrite() // a lost connection is an error of the reader
	}
}

// receive copies the output. Output that cannot be written is discarded, because the
// other streams share the connection.
func receive(to io.Writer, from *stream) {
	if to != nil {
		_, _ = io.Copy(to, from)
	}
	_, _ = io.Copy(io.Discard, from)
}

func sendSizes(to *stream, sizes <-chan runtime.TerminalSize, done <-chan struct{}) {
	encoder := json.NewEncoder(to)
	for {
		select {
		case size, ok := <-sizes:
			if !ok || encoder.Encode(size) != nil {
				return
			}
		case <-done:
			return
		}
	}
}

// A status is the v1.Status with which a server reports an exit.
type status struct {
	Status, Message, Reason string

	Details struct {
		Causes []struct{ Reason, Message string }
	}
}

// maxStatus is the maximum length of a status in bytes.
const maxStatus = 1 << 20

// outcomeOf parses the exit code from a status.
func outcomeOf(from io.Reader) (int32, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxStatus))
	if err != nil {
		return 0, err
	}
	if len(text) == 0 {
		return 0, lost(nil)
	}
	return parseStatus(text)
}

func parseStatus(text []byte) (int32, error) {
	var st status
	if err := json.Unmarshal(text, &st); err != nil {
		return 0, fmt.Errorf("streaming server: invalid status: %.100q", text)
	}
	switch {
	case st.Status == "Success":
		return 0, nil
	case st.Status != "Failure":
		return 0, fmt.Errorf("streaming server: invalid status: %.100q", text)
	case st.Reason == "NonZeroExitCode":
		for _, cause := range st.Details.Causes {
			if cause.Reason != "ExitCode" {
				continue
			}
			code, err := strconv.ParseInt(cause.Message, 10, 32)
			if err != nil || code == 0 {
				return 0, fmt.Errorf("streaming server: invalid exit code %.40q", cause.Message)
			}
			return int32(code), nil
		}
	}
	if st.Message == "" {
		st.Message = "the streaming server failed without an error message"
	}
	return 0, errors.New(st.Message)
}
