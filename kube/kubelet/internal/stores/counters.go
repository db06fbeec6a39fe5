package stores

import (
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/kubeparts/kubeparts/kube/metrics"
	clustermetrics "github.com/kubeparts/kubeparts/kube/metrics/cluster"
	"github.com/kubeparts/kubeparts/kube/metrics/remote"
)

// counters are the metrics of the kubelet. Their hooks are passed to the subsystems, joined
// with other hooks.
type counters struct {
	*metrics.Metrics
	Remote *remote.Metrics
	API    *clustermetrics.Metrics
}

func NewCounters(nodeName, reported string) (*counters, error) {
	major, rest, _ := strings.Cut(strings.TrimPrefix(reported, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := metrics.New(metrics.Config{
		NodeName: nodeName, Version: version.Info{GitVersion: reported, Major: major, Minor: minor},
	})
	if err != nil {
		return nil, err
	}
	c := &counters{Metrics: m}
	if c.Remote, err = remote.New(m); err != nil {
		return nil, err
	}
	c.API, err = clustermetrics.New(m)
	return c, err
}
