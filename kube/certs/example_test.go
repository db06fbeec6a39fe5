package certs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/kube/certs"
)

// An agent checks whether its certificate is still valid.
func ExampleValid() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cfg := certs.Config{NodeName: "n1", Dir: dir}
	fmt.Println(filepath.Base(cfg.Current()))
	err = certs.Valid(cfg.Current(), "n1", time.Now())
	fmt.Println(strings.HasSuffix(err.Error(), "no such file or directory"))
	// Output:
	// kubelet-client-current.pem
	// true
}
