package streaming

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// refusalTimeout is how long to wait for the server's error after the end of its data.
const refusalTimeout = 5 * time.Second

// PortForward connects through the server at u to a port of a pod. See
// [runtime.PortForwarder].
func (c *Client) PortForward(ctx context.Context, u *url.URL, port int32, conn io.ReadWriteCloser) error {
	defer conn.Close()
	// A caller that cancels without reading conn is not waited for.
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	err := c.session(ctx, u, forwardProtocol, func(m *mux) (func() error, error) {
		headers := func(kind string) http.Header {
			return http.Header{headerStreamType: {kind}, "port": {strconv.Itoa(int(port))}, "requestID": {"0"}}
		}
		failure, err := m.open(headers("error"), true)
		if err != nil {
			return nil, err
		}
		if err := failure.closeWrite(); err != nil {
			return nil, lost(err)
		}
		data, err := m.open(headers("data"), true)
		if err != nil {
			return nil, err
		}
		return func() error {
			// The goroutine returns when conn is closed, which is deferred.
			go send(data, conn)
			refusal := make(chan string, 1)
			go func() {
				text, _ := io.ReadAll(io.LimitReader(failure, maxRefusal))
				refusal <- strings.TrimSpace(string(text))
			}()
			_, err := io.Copy(conn, data)
			conn.Close()
			_ = data.closeWrite()
			// The error follows the end of the data.
			defer time.AfterFunc(refusalTimeout, m.close).Stop()
			if text := <-refusal; text != "" {
				return errors.New(text)
			}
			return err
		}, nil
	})
	if err != nil {
		return fmt.Errorf("streaming: forward to port %d: %w", port, err)
	}
	return nil
}
