package remote_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/runtime/cri/remote"
)

func ExampleDial() {
	dir, err := os.MkdirTemp("", "cri")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "cri.sock")
	stop, err := serve(socket, new(server)) // usually a containerd
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	ctx := context.Background()
	client, err := remote.Dial(ctx, "unix://"+socket, remote.Config{})
	if err != nil {
		log.Fatal(err)
	}
	version, err := client.Runtime.Version(ctx, "0.1.0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(version.RuntimeName, version.RuntimeVersion)
	fmt.Println("close:", client.Close(ctx))
	// Output:
	// example v1
	// close: <nil>
}
