package serve_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
)

// Example serves a fake runtime to CRI clients.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir, err := os.MkdirTemp("", "serve")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	fake, err := fakecri.New(fakecri.Config{})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := serve.Listen(ctx, filepath.Join(dir, "cri.sock"))
	if err != nil {
		log.Fatal(err)
	}
	server, err := serve.New(serve.Config{Listener: listener, Runtime: fake, Images: fake, Streams: fake})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()

	client, err := remote.Dial(ctx, listener.Addr().String(), remote.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	pods, err := client.Runtime.ListPodSandbox(ctx, nil)
	fmt.Println(client.Name, "has", len(pods), "pods;", err)
	stop()
	fmt.Println("the server ended with", <-ended)
	// Output:
	// fakecri has 0 pods; <nil>
	// the server ended with <nil>
}
