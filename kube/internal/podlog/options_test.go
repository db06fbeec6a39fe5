package podlog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/internal/podlog"
	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

func TestOptionsAreValidated(t *testing.T) { // la-1
	at := metav1.Now()
	for name, c := range map[string]struct {
		opts  v1.PodLogOptions
		valid bool
	}{
		"none":               {v1.PodLogOptions{}, true},
		"no lines":           {v1.PodLogOptions{TailLines: new(int64(0))}, true},
		"negative lines":     {v1.PodLogOptions{TailLines: new(int64(-1))}, false},
		"no bytes":           {v1.PodLogOptions{LimitBytes: new(int64(0))}, false},
		"no seconds":         {v1.PodLogOptions{SinceSeconds: new(int64(0))}, false},
		"two times":          {v1.PodLogOptions{SinceSeconds: new(int64(1)), SinceTime: &at}, false},
		"one stream":         {v1.PodLogOptions{Stream: new("Stderr")}, true},
		"unknown stream":     {v1.PodLogOptions{Stream: new("stderr")}, false},
		"tail of one stream": {v1.PodLogOptions{Stream: new("Stdout"), TailLines: new(int64(1))}, false},
		"tail of all":        {v1.PodLogOptions{Stream: new("All"), TailLines: new(int64(1))}, true},
	} {
		assert.Equal(t, c.valid, podlog.Valid(&c.opts), name)
	}
}

func TestOptionsBecomeARequest(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	earlier := metav1.NewTime(now.Add(-time.Hour))
	for name, c := range map[string]struct {
		opts v1.PodLogOptions
		want logread.Request
	}{
		"none": {v1.PodLogOptions{}, logread.Request{}},
		"all": {
			v1.PodLogOptions{Follow: true, Timestamps: true, TailLines: new(int64(3)), LimitBytes: new(int64(4)), SinceTime: &earlier},
			logread.Request{Follow: true, Timestamps: true, Tail: new(int64(3)), Limit: new(int64(4)), Since: earlier.Time},
		},
		"one stream":      {v1.PodLogOptions{Stream: new("Stderr")}, logread.Request{Stream: logread.Stderr}},
		"the later since": {v1.PodLogOptions{SinceSeconds: new(int64(60)), SinceTime: &earlier}, logread.Request{Since: now.Add(-time.Minute)}},
		"ages ago":        {v1.PodLogOptions{SinceSeconds: new(int64(1<<63 - 1))}, logread.Request{Since: now.Add(-9223372036 * time.Second)}},
	} {
		assert.Equal(t, c.want, podlog.Request(&c.opts, now), name)
	}
}
