package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/kubeparts/kubeparts/runtime"
)

// shell is a program with a few commands.
var shell = program{
	exec: func(ctx context.Context, cmd []string, s runtime.Streams) (int32, error) {
		switch cmd[0] {
		case "cat":
			in, err := io.ReadAll(s.Stdin)
			fmt.Fprintf(s.Stdout, "%s", in)
			fmt.Fprintf(s.Stderr, "%d bytes", len(in))
			return 0, err
		case "exit":
			code, err := strconv.Atoi(cmd[1])
			return int32(code), err
		case "words":
			fmt.Fprintf(s.Stdout, "%q", cmd)
			return 0, nil
		case "wait":
			fmt.Fprint(s.Stdout, "waiting")
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return 0, errors.New("no such command")
	},
	attach: func(_ context.Context, s runtime.Streams) error {
		fmt.Fprint(s.Stdout, "attached")
		_, err := io.Copy(s.Stdout, s.Stdin)
		return err
	},
	forward: func(_ context.Context, port int32, conn io.ReadWriteCloser) error {
		if port == 1 {
			return errors.New("connection refused there")
		}
		_, err := io.Copy(conn, conn)
		return err
	},
}

// everywhere runs a test with each runtime and each client.
func everywhere(t *testing.T, p program, test func(t *testing.T, s *site, client string)) {
	for how, begin := range runtimes {
		t.Run(how, func(t *testing.T) {
			s := onSite(t, begin(t, p), nil)
			for client := range clients {
				t.Run(client, func(t *testing.T) { test(t, s, client) })
			}
		})
	}
}

func TestACommandHasItsStreamsAndItsCode(t *testing.T) { // sv-8, sv-9
	everywhere(t, shell, func(t *testing.T, s *site, client string) {
		if client != "WebSocket v4" { // which cannot signal the end of input
			for _, in := range []string{"hello", strings.Repeat("a long one ", 100_000)} {
				out, errOut, code, err := s.exec(client, in, "cat")
				require.NoError(t, err)
				assert.Equal(t, in, out)
				assert.Equal(t, fmt.Sprintf("%d bytes", len(in)), errOut)
				assert.Zero(t, code)
			}
		}
		for _, want := range []int{0, 1, 137, 255} {
			_, _, code, err := s.exec(client, "", "exit", strconv.Itoa(want))
			require.NoError(t, err)
			assert.Equal(t, want, code)
		}
		out, _, _, err := s.exec(client, "", "words", "a b", "", "c&d=e", "ü")
		require.NoError(t, err)
		assert.Equal(t, `["words" "a b" "" "c&d=e" "ü"]`, out)
		_, _, _, err = s.exec(client, "", "nonsense")
		assert.ErrorContains(t, err, "no such command")
	})
}

func TestACommandHasATerminalAndItsSizes(t *testing.T) { // sv-8
	everywhere(t, program{exec: func(ctx context.Context, _ []string, s runtime.Streams) (int32, error) {
		if !s.TTY || s.Stderr != nil || s.Stdin != nil {
			return 0, errors.New("wrong streams")
		}
		for range 2 {
			select {
			case size := <-s.Resize:
				fmt.Fprintf(s.Stdout, "%dx%d ", size.Width, size.Height)
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		return 0, nil
	}}, func(t *testing.T, s *site, client string) {
		queue := make(sizes, 2)
		queue <- remotecommand.TerminalSize{Width: 80, Height: 24}
		queue <- remotecommand.TerminalSize{Width: 100, Height: 30}
		var out locked
		err := s.stream(t.Context(), client, "/exec/default/web/app", remotecommand.StreamOptions{Stdout: &out, Tty: true, TerminalSizeQueue: queue}, "sh")
		close(queue)
		require.NoError(t, err)
		assert.Equal(t, "80x24 100x30 ", out.String())
	})
}

func TestAttachHasTheStreamsOfTheContainer(t *testing.T) {
	everywhere(t, shell, func(t *testing.T, s *site, client string) {
		if client == "WebSocket v4" {
			t.Skip("no input has an end")
		}
		var out locked
		err := s.stream(t.Context(), client, "/attach/default/web/u1/app", remotecommand.StreamOptions{Stdin: strings.NewReader(" and typed"), Stdout: &out})
		require.NoError(t, err)
		assert.Equal(t, "attached and typed", out.String())
	})
}

func TestAPortIsForwarded(t *testing.T) { // sv-10
	for how, begin := range runtimes {
		s := onSite(t, begin(t, shell), nil)
		for client := range dialers {
			t.Run(how+" "+client, func(t *testing.T) {
				s := &site{t: t, base: s.base, rest: s.rest}
				addr := s.forward(t.Context(), client, "/portForward/default/web", 8080)
				var many sync.WaitGroup
				for i := range 40 {
					many.Go(func() {
						conn, err := net.Dial("tcp", addr)
						if !assert.NoError(t, err) {
							return
						}
						defer conn.Close()
						text := strings.Repeat(fmt.Sprintf("connection %d ", i), 2000)
						go func() { _, _ = io.WriteString(conn, text) }()
						got := make([]byte, len(text))
						_, err = io.ReadFull(conn, got)
						assert.NoError(t, err)
						assert.Equal(t, text, string(got))
					})
				}
				many.Wait()
				refused, err := net.Dial("tcp", s.forward(t.Context(), client, "/portForward/default/web/u1", 1))
				require.NoError(t, err)
				defer refused.Close()
				got, _ := io.ReadAll(refused)
				assert.Empty(t, got)
			})
		}
	}
}
