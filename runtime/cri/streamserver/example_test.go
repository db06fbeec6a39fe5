package streamserver_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/runtime/cri/streamserver"
)

// A handler serves the streams of a command that counts the bytes of its input.
func ExampleServer_Exec() {
	streams := streamserver.Server{Idle: time.Hour, Creation: 10 * time.Second}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams.Exec(w, r, runtime.StreamOptions{Stdin: true, Stdout: true}, func(_ context.Context, s runtime.Streams) (int32, error) {
			n, err := io.Copy(io.Discard, s.Stdin)
			fmt.Fprintln(s.Stdout, n)
			return 3, err
		})
	}))
	defer server.Close()

	u, err := url.Parse(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	var out strings.Builder
	code, err := new(streaming.Client).Exec(context.Background(), u, runtime.Streams{Stdin: strings.NewReader("hello"), Stdout: &out})
	fmt.Print(out.String(), "exit code ", code, " ", err, "\n")
	// Output:
	// 5
	// exit code 3 <nil>
}
