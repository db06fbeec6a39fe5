package streamserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/kubeparts/kubeparts/runtime"
)

// statusPatience limits the write of the status of a command.
const statusPatience = 10 * time.Second

// RequestsV5 reports whether a client offers v5.channel.k8s.io, which requires WebSocket.
// The streaming servers of CRI runtimes do not support it.
func RequestsV5(r *http.Request) bool { return wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) }

// serveV5 serves v5.channel.k8s.io, which differs from earlier versions in a message that
// closes the client's input.
func serveV5(client *Client, r *http.Request, opts runtime.StreamOptions, run func(runtime.Streams) (int32, error)) {
	channels := make([]wsstream.ChannelType, 5)
	for n, open := range map[int]bool{
		remotecommand.StreamStdOut: opts.Stdout, remotecommand.StreamStdErr: opts.Stderr && !opts.TTY, remotecommand.StreamErr: true,
	} {
		if open {
			channels[n] = wsstream.WriteChannel
		}
	}
	for n, open := range map[int]bool{remotecommand.StreamStdIn: opts.Stdin, remotecommand.StreamResize: opts.TTY} {
		if open {
			channels[n] = wsstream.ReadChannel
		}
	}
	ws := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{remotecommand.StreamProtocolV5Name: {Binary: true, Channels: channels}})
	_, streams, err := ws.Open(client, r)
	if err != nil {
		return // the client has received it
	}
	defer ws.Close()

	s := runtime.Streams{TTY: opts.TTY}
	first := streams[remotecommand.StreamErr]
	if opts.Stderr && !opts.TTY {
		s.Stderr = streams[remotecommand.StreamStdErr]
		first = streams[remotecommand.StreamStdErr]
	}
	if opts.Stdout {
		s.Stdout = streams[remotecommand.StreamStdOut]
		first = streams[remotecommand.StreamStdOut]
	}
	if opts.Stdin {
		s.Stdin = streams[remotecommand.StreamStdIn]
	}
	// An empty message on the first writable stream reports that the streams are ready.
	if _, err := first.Write(nil); err != nil {
		return
	}
	if opts.TTY {
		s.Resize = readSizes(r.Context(), streams[remotecommand.StreamResize])
	}
	code, err := run(s)
	text, encodeErr := json.Marshal(outcome(code, err))
	if encodeErr != nil {
		return
	}
	ws.SetWriteDeadline(statusPatience)
	_, _ = streams[remotecommand.StreamErr].Write(text) // the client may have disconnected
}

// maxSize is the longest encoding of a terminal size, in bytes.
const maxSize = 4 << 10

// readSizes decodes the sizes of a terminal until the stream ends or ctx is done. After
// an invalid size it decodes no others but reads the stream to its end, because the
// client's input is blocked by unread data.
func readSizes(ctx context.Context, from io.Reader) <-chan runtime.TerminalSize {
	to := make(chan runtime.TerminalSize)
	go func() {
		defer func() { _, _ = io.Copy(io.Discard, from) }()
		message := &io.LimitedReader{R: from, N: maxSize}
		decoder := json.NewDecoder(message)
		for {
			var size runtime.TerminalSize
			if decoder.Decode(&size) != nil {
				return
			}
			message.N = maxSize
			select {
			case to <- size:
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}

// outcome returns the status of a command as the protocols encode it since v4.
func outcome(code int32, err error) metav1.Status {
	switch {
	case err != nil:
		return metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
			Message: fmt.Sprintf("Internal error occurred: %v", err),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: err.Error()}}},
		}
	case code != 0:
		return metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Message: fmt.Sprintf("command terminated with non-zero exit code: %v", exitError(code)),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
				Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(int(code)),
			}}},
		}
	}
	return metav1.Status{Status: metav1.StatusSuccess}
}
