package status_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/status"
)

// fill sets everything that v reaches to a nonzero value that depends on n.
func fill(v reflect.Value, n int) {
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		*at = metav1.NewTime(time.Unix(int64(1000+n), 0))
		return
	case *resource.Quantity:
		*at = *resource.NewQuantity(int64(1+n), resource.DecimalSI)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("s", n))
	case reflect.Bool:
		v.SetBool(n%2 == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(1 + n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, 0)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(v.Kind())
	}
}

// st-49: Same compares every field that the API has, also future ones.
func TestSameMissesNoFieldOfTheAPI(t *testing.T) {
	othersOwn := map[string]bool{
		"NominatedNodeName": true, "ResourceClaimStatuses": true, "ExtendedResourceClaimStatus": true,
		"NodeAllocatableResourceClaimStatuses": true,
		"Conditions":                           true, // of a type that is not ours
	}
	// differ calls each with statuses that differ in one field.
	differ := func(in func(s *v1.PodStatus) reflect.Value, each func(name string, a, b *v1.PodStatus)) {
		typ := in(new(v1.PodStatus)).Type()
		for i := range typ.NumField() {
			a, b := new(v1.PodStatus), new(v1.PodStatus)
			fill(in(a).Field(i), 0)
			fill(in(b).Field(i), 1)
			each(typ.Field(i).Name, a, b)
		}
	}
	differ(func(s *v1.PodStatus) reflect.Value { return reflect.ValueOf(s).Elem() }, func(name string, a, b *v1.PodStatus) {
		assert.Equal(t, othersOwn[name], status.Equal(a, b), name)
		assert.Equal(t, othersOwn[name], status.Equal(a, new(v1.PodStatus)), name)
		assert.True(t, status.Equal(a, a.DeepCopy()), name)
	})
	for _, list := range []func(s *v1.PodStatus) *[]v1.ContainerStatus{
		func(s *v1.PodStatus) *[]v1.ContainerStatus { return &s.InitContainerStatuses },
		func(s *v1.PodStatus) *[]v1.ContainerStatus { return &s.ContainerStatuses },
		func(s *v1.PodStatus) *[]v1.ContainerStatus { return &s.EphemeralContainerStatuses },
	} {
		one := func(s *v1.PodStatus) *v1.ContainerStatus {
			if len(*list(s)) == 0 {
				*list(s) = make([]v1.ContainerStatus, 1)
			}
			return &(*list(s))[0]
		}
		for _, in := range []func(s *v1.PodStatus) reflect.Value{
			func(s *v1.PodStatus) reflect.Value { return reflect.ValueOf(one(s)).Elem() },
			func(s *v1.PodStatus) reflect.Value { return reflect.ValueOf(&one(s).State).Elem() },
			func(s *v1.PodStatus) reflect.Value { return reflect.ValueOf(&one(s).LastTerminationState).Elem() },
			func(s *v1.PodStatus) reflect.Value {
				one(s).State.Terminated = new(v1.ContainerStateTerminated)
				return reflect.ValueOf(one(s).State.Terminated).Elem()
			},
		} {
			differ(in, func(name string, a, b *v1.PodStatus) {
				assert.False(t, status.Equal(a, b), name)
				assert.True(t, status.Equal(a, a.DeepCopy()), name)
				assert.True(t, equality.Semantic.DeepEqual(a, a.DeepCopy()))
			})
		}
	}
}

func BenchmarkSame(b *testing.B) {
	s := new(v1.PodStatus)
	s.ContainerStatuses = make([]v1.ContainerStatus, 2)
	for i := range s.ContainerStatuses {
		s.ContainerStatuses[i].State.Running = &v1.ContainerStateRunning{StartedAt: metav1.Now()}
	}
	s.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}, {Type: v1.PodInitialized, Status: v1.ConditionTrue}}
	other := s.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		if !status.Equal(s, other) {
			b.Fatal("they are")
		}
	}
}
