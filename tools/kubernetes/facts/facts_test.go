// Package facts compares the tables that this repository has taken from Kubernetes with the
// source of the version in go.mod: feature gates, refused configurations, event reasons, safe
// sysctls and default eviction thresholds.
//
//	GOWORK=off go test ./facts            fails if a file differs from Kubernetes
//	GOWORK=off go test ./facts -update    writes the files
//
// The files are in the packages that have the tables, whose own tests compare the tables with
// the files, so that no package imports k8s.io/kubernetes. After -update those tests fail
// where Kubernetes has changed.
package facts

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	metricsfeatures "k8s.io/component-base/metrics/features"
	_ "k8s.io/kubernetes/pkg/features"
)

var update = flag.Bool("update", false, "write the files")

// TestMain registers the feature gates that cmd/kubelet registers in addition to those of
// pkg/features.
func TestMain(m *testing.M) {
	utilruntime.Must(v1.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
	utilruntime.Must(metricsfeatures.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
	os.Exit(m.Run())
}

// compare compares text with a file of the repository.
func compare(t *testing.T, file, text string) {
	t.Helper()
	path := filepath.Join("..", "..", "..", filepath.FromSlash(file))
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != text {
		t.Errorf("%s differs from Kubernetes; in tools/kubernetes: GOWORK=off go test ./facts -update\nKubernetes has:\n%s", file, text)
	}
}
