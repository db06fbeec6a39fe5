package register_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/kubeparts/kubeparts/volume/csi/register"
)

// A printer is a Handler.
type printer struct{}

func (printer) Register(_ context.Context, name, endpoint string, versions []string) error {
	fmt.Println(name, "is at", endpoint)
	return nil
}

func (printer) Deregister(_ context.Context, name string) { fmt.Println(name, "is gone") }

func Example() {
	dir, err := os.MkdirTemp("", "plugins")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	watcher, err := register.New(register.Config{Dir: dir, Handlers: map[string]register.Handler{register.CSIPlugin: printer{}}})
	if err != nil {
		log.Fatal(err)
	}
	retryAt, err := watcher.Scan(context.Background()) // or Run, which watches
	fmt.Println(retryAt.IsZero(), err)
	// Output:
	// true <nil>
}
