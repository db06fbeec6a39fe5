//go:build linux || darwin

package claim_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/agent/claim"
)

// A second agent with the same root directory does not start.
func Example() {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cfg := claim.Config{Root: filepath.Join(dir, "root")}
	release, err := claim.Take(cfg)
	if err != nil {
		log.Fatal(err)
	}
	_, err = claim.Take(cfg)
	fmt.Println("in use:", errors.Is(err, claim.ErrInUse))
	release()
	release, err = claim.Take(cfg)
	fmt.Println("after release:", err)
	release()
	// Output:
	// in use: true
	// after release: <nil>
}
