// Gates generates kube/kubelet/config/kubernetesgates.go, and the list of the gates that a kubelet
// reads, for any version of Kubernetes, from its source:
//
//	go run ./gates -version v1.38.0-beta.0 -out DIR
//
// Nothing of Kubernetes is compiled, so that it works for a pre-release whose dependencies are not all
// published. tools/kubernetes/facts makes the same files for the version that it builds.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	kubernetes := flag.String("version", "", "`version` of k8s.io/kubernetes, such as v1.38.0-beta.0")
	out := flag.String("out", "", "`directory` for kubernetesgates.go and kubelet-gates.txt")
	flag.Parse()
	if err := run(*kubernetes, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gates:", err)
		os.Exit(1)
	}
}

func run(kubernetes, out string) error {
	if !semver.IsValid(kubernetes) || out == "" {
		return fmt.Errorf("-version and -out are required")
	}
	root, err := download("k8s.io/kubernetes", kubernetes)
	if err != nil {
		return err
	}
	s := newSource()
	staging := "v0." + strings.TrimPrefix(kubernetes, "v1.")
	for _, module := range []string{"apiserver", "apiextensions-apiserver", "client-go", "component-base", "controller-manager"} {
		dir, err := download("k8s.io/"+module, staging)
		if err != nil {
			return err
		}
		for _, features := range []string{"pkg/features", "features", "logs/api/v1", "metrics/features", "zpages/features"} {
			if err := s.constantsOf(filepath.Join(dir, features)); err != nil {
				return err
			}
		}
		// These register their gates themselves; the others are in the table of Kubernetes.
		for _, file := range map[string][]string{
			"client-go": {"features/known_features.go"}, "component-base": {"logs/api/v1/kube_features.go", "metrics/features/kube_features.go"},
			"controller-manager": {"pkg/features/kube_features.go"},
		}[module] {
			if err := s.gatesOf(filepath.Join(dir, file), semver.MajorMinor(kubernetes)); err != nil {
				return err
			}
		}
	}
	if err := s.constantsOf(filepath.Join(root, "pkg/features")); err != nil {
		return err
	}
	if err := s.gatesOf(filepath.Join(root, "pkg/features/kube_features.go"), semver.MajorMinor(kubernetes)); err != nil {
		return err
	}
	text, err := format.Source([]byte(s.table(strings.TrimPrefix(kubernetes, "v"))))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "kubernetesgates.go"), text, 0o644); err != nil {
		return err
	}
	read, err := s.readBy(root, kubeletDirs)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "kubelet-gates.txt"), []byte(strings.Join(read, "\n")+"\n"), 0o644)
}

// download returns the directory of a module in the module cache.
func download(module, version string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module+"@"+version)
	cmd.Dir = os.TempDir() // not in a module whose go.mod would matter
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=auto", "GOWORK=off")
	text, _ := cmd.Output()
	var result struct{ Dir, Error string }
	if err := json.Unmarshal(text, &result); err != nil {
		return "", fmt.Errorf("go mod download %s@%s: %w", module, version, err)
	}
	if result.Error != "" {
		return "", fmt.Errorf("go mod download %s@%s: %s", module, version, result.Error)
	}
	return result.Dir, nil
}
