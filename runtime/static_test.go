package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestAPodIsStaticByItsSource(t *testing.T) { // src-2
	from := func(source string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "prod", Annotations: map[string]string{runtime.ConfigSourceAnnotation: source},
		}}
	}
	assert.True(t, runtime.IsStatic(from("file")))
	assert.True(t, runtime.IsStatic(from("http")))
	assert.False(t, runtime.IsStatic(from("api")))
	assert.False(t, runtime.IsStatic(new(v1.Pod)), "its source is unknown")
	assert.Equal(t, "web_prod", runtime.PodFullName(from("file")))

	mirror := from("api")
	assert.False(t, runtime.IsMirror(mirror))
	mirror.Annotations["kubernetes.io/config.mirror"] = ""
	assert.True(t, runtime.IsMirror(mirror))
}
