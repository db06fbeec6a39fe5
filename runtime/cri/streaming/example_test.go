package streaming_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/moby/spdystream"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
)

// The URL is the response of a runtime to an Exec call; cri.Runtime.StreamExec does
// both steps.
func ExampleClient_Exec() {
	u, err := shout() // usually a containerd
	if err != nil {
		log.Fatal(err)
	}
	code, err := new(streaming.Client).Exec(context.Background(), u, runtime.Streams{
		Stdin:  strings.NewReader("hello"),
		Stdout: os.Stdout,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("\nexit code", code)
	// Output:
	// HELLO
	// exit code 0
}

// shout serves a command that prints its input in capitals.
func shout() (*url.URL, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		switching(conn, req.Header.Get("X-Stream-Protocol-Version"))
		over, err := spdystream.NewConnection(conn, true)
		if err != nil {
			return
		}
		streams := make(chan *spdystream.Stream, 3)
		// The client opens the next stream after the reply to this one: the order is fixed.
		go over.Serve(func(s *spdystream.Stream) { streams <- s; _ = s.SendReply(http.Header{}, false) })
		outcome, stdin, stdout := <-streams, <-streams, <-streams
		text, _ := io.ReadAll(stdin)
		_, _ = stdout.Write([]byte(strings.ToUpper(string(text))))
		_, _ = outcome.Write([]byte(success))
		_, _ = outcome.Close(), stdout.Close()
	}))
	return url.Parse("http://" + listener.Addr().String() + "/exec/token")
}
