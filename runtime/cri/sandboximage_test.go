package cri_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A talkative runtime returns info, its configuration, for a verbose Status call.
type talkative struct {
	internalapi.RuntimeService
	info map[string]string
	err  error
}

func (t talkative) Status(_ context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	answer := &runtimeapi.StatusResponse{}
	if verbose {
		answer.Info = t.info
	}
	return answer, t.err
}

func TestTheSandboxImageIsReadFromTheRuntime(t *testing.T) { // ig-19
	for name, tc := range map[string]struct {
		info map[string]string
		want string
	}{
		"containerd 1.6": {map[string]string{"config": `{"containerd": {}, "sandboxImage": "registry.k8s.io/pause:3.6"}`, "golang": `"go1.19"`}, "registry.k8s.io/pause:3.6"},
		"containerd 2":   {map[string]string{"config": `{"containerd": {}, "ignoreImageDefinedVolumes": false}`}, ""},
		"not JSON":       {map[string]string{"config": "[crio]\npause_image = \"pause\"\n"}, ""},
		"another type":   {map[string]string{"config": `{"sandboxImage": ["a"]}`}, ""},
		"nothing":        {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			rt, _ := f.engine(t, cri.Config{Runtime: talkative{f, tc.info, nil}})
			got, err := rt.SandboxImage(t.Context())
			assert.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
	f := newFake()
	rt, _ := f.engine(t, cri.Config{Runtime: talkative{f, nil, errors.New("away")}})
	_, err := rt.SandboxImage(t.Context())
	assert.EqualError(t, err, "cri: runtime status: away")
}
