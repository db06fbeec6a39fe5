package cri_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

func TestNewNamesTheMissingField(t *testing.T) {
	f := newFake()
	for want, cfg := range map[string]cri.Config{
		"cri: Config.Runtime is nil":                                {Name: "fake", Images: f},
		"cri: Config.Images is nil":                                 {Name: "fake", Runtime: f},
		"cri: Config.Containers.PostStartTimeout is negative: -1ns": {Name: "fake", Runtime: f, Images: f, Containers: cri.ContainerConfig{PostStartTimeout: -1}},
		`cri: Config.Name "" is not the name of a runtime`:          {Runtime: f, Images: f},
		`cri: Config.Name "unix://x" is not the name of a runtime`:  {Name: "unix://x", Runtime: f, Images: f},
		"cri: Config.Containers.Backoff: plan: BackoffConfig.Initial is negative: -1s": {
			Name: "fake", Runtime: f, Images: f, Containers: cri.ContainerConfig{Backoff: plan.BackoffConfig{Initial: -time.Second}},
		},
		"cri: Config.Pulls: images: Config.Burst is -1": {
			Name: "fake", Runtime: f, Images: f, Pulls: cri.PullConfig{Config: images.Config{Burst: -1}},
		},
	} {
		_, err := cri.New(cfg)
		assert.EqualError(t, err, want)
	}
}
