package pipeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
)

type blockedVolumes struct{ *node }

func (blockedVolumes) Blocked(types.UID) (string, time.Time) { return "busy", time.Time{} }

type hidingVolumes struct{ pipeline.Volumes }

type wrappedVolumes struct{ hidingVolumes }

func (w wrappedVolumes) Unwrap() any { return w.Volumes }

func TestWrappedVolumesKeepTheirInterfaces(t *testing.T) {
	n, _ := newNode(t)
	hiding := hidingVolumes{blockedVolumes{n}}
	_, err := pipeline.New(pipeline.Config{Runtime: n, Resources: pipeline.Resources{Volumes: hiding}})
	assert.EqualError(t, err, "pipeline: Config.Resources.Volumes: pipeline_test.hidingVolumes hides Blocked (pipeline.BlockedReporter) of pipeline_test.blockedVolumes; add Unwrap")

	_, err = pipeline.New(pipeline.Config{Runtime: n, Resources: pipeline.Resources{Volumes: wrappedVolumes{hiding}}})
	assert.NoError(t, err)
}

type hidingHandler struct{ podworker.Handler }

type wrappedHandler struct{ hidingHandler }

func (w wrappedHandler) Unwrap() any { return w.Handler }

func TestAWrappedPipelineKeepsItsInterfaces(t *testing.T) {
	_, p := newNode(t)
	cfg := podworker.Config{Handler: hidingHandler{p}, StatusCache: new(pleg.Generator)}
	_, err := podworker.New(cfg)
	assert.EqualError(t, err, "podworker: Config.Handler: pipeline_test.hidingHandler hides Retain (podworker.Retainer) of *pipeline.Pipeline; add Unwrap")

	cfg.Handler = wrappedHandler{hidingHandler{p}}
	_, err = podworker.New(cfg)
	require.NoError(t, err)
	for name, is := range map[string]bool{
		"Retainer":         found[podworker.Retainer](cfg.Handler),
		"Reconciler":       found[podworker.Reconciler](cfg.Handler),
		"Updater":          found[podworker.Updater](cfg.Handler),
		"ProgressReporter": found[podworker.ProgressReporter](cfg.Handler),
	} {
		assert.True(t, is, name)
	}
}

func found[T any](part any) bool {
	_, ok := compose.As[T](part)
	return ok
}
