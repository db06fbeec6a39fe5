package staticuid

import (
	"bufio"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func dump(typ string, l layout, v any) string {
	var b strings.Builder
	out := bufio.NewWriter(&b)
	dumper{out: out, layout: l}.typed(typ, reflect.ValueOf(v))
	out.Flush()
	return b.String()
}

func TestADumpHasTheFieldsOfTheLayout(t *testing.T) {
	l := parse(`core.Toleration
 Key string
 Effect core.TaintEffect
 TolerationSeconds *int64
 RemovedFlag bool
 RemovedCount int32
 RemovedName string
 Removed *core.Other
`)
	assert.Equal(t, `(core.Toleration){Key:(string)k Effect:(core.TaintEffect)NoExecute TolerationSeconds:(*int64)5 RemovedFlag:(bool)false RemovedCount:(int32)0 RemovedName:(string) Removed:(*core.Other)<nil>}`,
		dump("core.Toleration", l, v1.Toleration{Key: "k", Value: "not in the layout", Effect: v1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))}))
	assert.Equal(t, `(*core.Toleration)<nil>`, dump("*core.Toleration", l, (*v1.Toleration)(nil)))
}

func TestADumpHasListsAndMapsInOrder(t *testing.T) {
	assert.Equal(t, "([]string)<nil>", dump("[]string", nil, []string(nil)))
	assert.Equal(t, "([]string)[]", dump("[]string", nil, []string{}))
	assert.Equal(t, "([]string)[a b c]", dump("[]string", nil, []string{"a b", "c"}))
	assert.Equal(t, "(map[string]string)map[a:1 b:2]", dump("map[string]string", nil, map[string]string{"b": "2", "a": "1"}))
	assert.Equal(t, "(map[string]string)<nil>", dump("map[string]string", nil, map[string]string(nil)))
	assert.Equal(t, "(int64)7", dump("int64", nil, new(int64(7))), "a field that has become a pointer")
}

func TestADumpHasTheTypesOfTheAPIMachineryAsTheyAre(t *testing.T) {
	assert.Equal(t, `(v1.Time){Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}`, dump("v1.Time", nil, metav1.Time{}))
	assert.Equal(t, `([]v1.OwnerReference)[{APIVersion:(string) Kind:(string)A Name:(string) UID:(types.UID) Controller:(*bool)true BlockOwnerDeletion:(*bool)<nil>}]`,
		dump("[]v1.OwnerReference", nil, []metav1.OwnerReference{{Kind: "A", Controller: new(true)}}))
}

// Each release has a layout that covers the pod, and differs from the others.
func TestEveryReleaseHasALayout(t *testing.T) {
	uids := map[types.UID]Release{}
	for _, r := range Releases {
		for _, name := range []string{"core.Pod", "core.PodSpec", "core.Container", "core.PodStatus"} {
			assert.NotEmpty(t, layouts()[r][name], "1.%d: %s", r, name)
		}
		pod := &v1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod"}}
		// 1.38 differs in the profiles and in quantities only.
		pod.Spec.SecurityContext = &v1.PodSecurityContext{SeccompProfile: &v1.SeccompProfile{Type: "RuntimeDefault"}}
		uid := r.UID(pod, Origin{Node: "n", File: "/f"})
		assert.NotContains(t, uids, uid, "1.%d", r)
		uids[uid] = r
		assert.Equal(t, uid, r.UID(pod, Origin{Node: "N", File: "/f"}), "the node's name is in lower case")
		assert.NotEqual(t, uid, r.UID(pod, Origin{URL: "http://f"}))
		assert.Equal(t, "Pod", pod.Kind, "it is not changed")
	}
}

func TestADumpHasTheTextOfQuantities(t *testing.T) {
	quantities := func(r Release, texts ...string) (dumps []string) {
		for _, text := range texts {
			list := v1.ResourceList{"x": resource.MustParse(text)}
			if r >= 38 {
				FormatQuantities(&list)
			}
			var b strings.Builder
			out := bufio.NewWriter(&b)
			dumper{out: out, release: r}.linked(reflect.ValueOf(list["x"]))
			out.Flush()
			_, s, _ := strings.Cut(b.String(), " s:")
			dumps = append(dumps, s)
		}
		return dumps
	}
	assert.Equal(t, []string{"(string)100m Format:(resource.Format)DecimalSI}", "(string) Format:(resource.Format)BinarySI}", "(string)1Gi Format:(resource.Format)BinarySI}"},
		quantities(37, "100m", "64Mi", "1Gi"))
	const text = "(resource.cachedString){str:(string)%s format:(resource.formatCode)%d} Format:(resource.Format)%s}"
	assert.Equal(t, []string{
		fmt.Sprintf(text, "100m", 3, "DecimalSI"), fmt.Sprintf(text, "64Mi", 2, "BinarySI"), fmt.Sprintf(text, "125m", 3, "DecimalSI"), fmt.Sprintf(text, "1e3", 1, "DecimalExponent"),
	}, quantities(38, "100m", "64Mi", "0.125", "1e3"))
	var zero struct{ Quantity resource.Quantity }
	FormatQuantities(&zero)
	assert.Equal(t, resource.Quantity{}, zero.Quantity)
}
