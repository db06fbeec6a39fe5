package staticpod_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/staticpod"
)

func TestAPodIsStaticByItsSource(t *testing.T) { // src-2
	from := func(source string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "prod", Annotations: map[string]string{staticpod.SourceAnnotation: source},
		}}
	}
	assert.True(t, staticpod.Is(from("file")))
	assert.True(t, staticpod.Is(from("http")))
	assert.False(t, staticpod.Is(from(staticpod.APISource)))
	assert.False(t, staticpod.Is(new(v1.Pod)), "nobody said where it comes from")
	assert.Equal(t, "web_prod", staticpod.FullName(from("file")))
}
