package apitest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

func newDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "nginx"}}},
		}},
	}
}

func TestGenerationsCountChangesOfTheSpec(t *testing.T) {
	api := new(apitest.Server)
	deployments := connect(t, api.RESTConfig()).AppsV1().Deployments("prod")
	d, err := deployments.Create(t.Context(), newDeployment("web"), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 1, d.Generation)
	assert.EqualValues(t, 1, *d.Spec.Replicas)
	assert.EqualValues(t, 10, *d.Spec.RevisionHistoryLimit)
	assert.Equal(t, "25%", d.Spec.Strategy.RollingUpdate.MaxSurge.StrVal)
	assert.Equal(t, v1.PullAlways, d.Spec.Template.Spec.Containers[0].ImagePullPolicy)
	d.Spec.Replicas = new(int32(3))
	d.Status.Replicas = 7
	d, err = deployments.Update(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 2, d.Generation)
	assert.Zero(t, d.Status.Replicas)
	d.Spec.Replicas = new(int32(9))
	d.Status.Replicas = 3
	d, err = deployments.UpdateStatus(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 2, d.Generation)
	assert.EqualValues(t, 3, *d.Spec.Replicas)
	assert.EqualValues(t, 3, d.Status.Replicas)
	d.Spec.Selector.MatchLabels["x"] = "y"
	_, err = deployments.Update(t.Context(), d, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
}

func TestScaleChangesReplicas(t *testing.T) {
	api := new(apitest.Server)
	deployments := connect(t, api.RESTConfig()).AppsV1().Deployments("prod")
	_, err := deployments.Create(t.Context(), newDeployment("web"), metav1.CreateOptions{})
	require.NoError(t, err)
	sc, err := deployments.GetScale(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, autoscalingv1.ScaleSpec{Replicas: 1}, sc.Spec)
	assert.Equal(t, "app=web", sc.Status.Selector)
	sc.Spec.Replicas = 4
	stale := sc.DeepCopy()
	sc, err = deployments.UpdateScale(t.Context(), "web", sc, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 4, sc.Spec.Replicas)
	_, err = deployments.UpdateScale(t.Context(), "web", stale, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	_, err = deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":-1}}`), metav1.PatchOptions{}, "scale")
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	d := api.Get("deployments", "prod", "web").(*appsv1.Deployment)
	assert.EqualValues(t, 4, *d.Spec.Replicas)
	assert.EqualValues(t, 2, d.Generation)
}

func TestPatches(t *testing.T) {
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"add","path":"/data/b","value":"2"},{"op":"remove","path":"/data/a"}]`,
		types.MergePatchType:          `{"data":{"a":null,"b":"2"}}`,
		types.StrategicMergePatchType: `{"data":{"a":null,"b":"2"}}`,
	} {
		api := new(apitest.Server)
		maps := connect(t, api.RESTConfig()).CoreV1().ConfigMaps("prod")
		_, err := maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"a": "1"}}, metav1.CreateOptions{FieldManager: "maker"})
		require.NoError(t, err)
		dry, err := maps.Patch(t.Context(), "c", kind, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		require.NoError(t, err, kind)
		assert.Equal(t, map[string]string{"b": "2"}, dry.Data)
		assert.Equal(t, map[string]string{"a": "1"}, api.Get("configmaps", "prod", "c").(*v1.ConfigMap).Data, "a dry run")
		c, err := maps.Patch(t.Context(), "c", kind, []byte(patch), metav1.PatchOptions{FieldManager: "test"})
		require.NoError(t, err, kind)
		assert.Equal(t, map[string]string{"b": "2"}, c.Data, kind)
		require.Len(t, c.ManagedFields, 2, "%s", kind)
		assert.Equal(t, "test", c.ManagedFields[1].Manager)
		_, err = maps.Patch(t.Context(), "c", types.MergePatchType, []byte(`{"dota":{}}`), metav1.PatchOptions{FieldValidation: "Strict"})
		assert.True(t, apierrors.IsBadRequest(err), "%v", err)
		_, err = maps.Patch(t.Context(), "c", "text/plain", []byte(`{}`), metav1.PatchOptions{})
		assert.True(t, apierrors.IsUnsupportedMediaType(err), "%v", err)
	}
}

func TestServerSideApply(t *testing.T) {
	api := new(apitest.Server)
	maps := connect(t, api.RESTConfig()).CoreV1().ConfigMaps("prod")
	opts := func(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }
	c, err := maps.Apply(t.Context(), coreapply.ConfigMap("c", "prod").WithData(map[string]string{"a": "1", "b": "1"}), opts("one"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "1", "b": "1"}, c.Data)
	_, err = maps.Apply(t.Context(), coreapply.ConfigMap("c", "prod").WithData(map[string]string{"a": "2"}), opts("two"))
	require.True(t, apierrors.IsConflict(err), "%v", err)
	assert.ErrorContains(t, err, `conflict with "one"`)
	force := opts("two")
	force.Force = true
	c, err = maps.Apply(t.Context(), coreapply.ConfigMap("c", "prod").WithData(map[string]string{"a": "2"}), force)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "2", "b": "1"}, c.Data)
	c, err = maps.Apply(t.Context(), coreapply.ConfigMap("c", "prod"), opts("one"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "2"}, c.Data, "fields that a manager no longer applies are removed")
	again, err := maps.Apply(t.Context(), coreapply.ConfigMap("c", "prod"), opts("one"))
	require.NoError(t, err)
	assert.Equal(t, c.ResourceVersion, again.ResourceVersion, "nothing changed")

	deployments := connect(t, api.RESTConfig()).AppsV1().Deployments("prod")
	template := coreapply.PodTemplateSpec().WithLabels(map[string]string{"app": "web"}).
		WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("main").WithImage("nginx")))
	apply := appsapply.Deployment("web", "prod").WithSpec(appsapply.DeploymentSpec().
		WithSelector(metaapply.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).WithTemplate(template))
	d, err := deployments.Apply(t.Context(), apply, opts("one"))
	require.NoError(t, err)
	require.Len(t, d.Spec.Template.Spec.Containers, 1)
	side := coreapply.PodTemplateSpec().WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("side").WithImage("proxy")))
	d, err = deployments.Apply(t.Context(), appsapply.Deployment("web", "prod").WithSpec(appsapply.DeploymentSpec().WithTemplate(side)), opts("two"))
	require.NoError(t, err)
	assert.Len(t, d.Spec.Template.Spec.Containers, 2, "containers are merged by name")
}

func owned(pod *v1.Pod, owner metav1.Object, block bool) *v1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: &block}}
	return pod
}

func TestDependentsAreCollected(t *testing.T) {
	for policy, want := range map[metav1.DeletionPropagation]struct{ owner, pod bool }{
		metav1.DeletePropagationBackground: {false, true}, metav1.DeletePropagationForeground: {true, true}, metav1.DeletePropagationOrphan: {false, true},
	} {
		api := new(apitest.Server)
		owner := api.Put(newDeployment("web"))[0].(metav1.Object)
		api.Put(owned(newPod("web-1", "n1"), owner, true))
		c := connect(t, api.RESTConfig())
		require.NoError(t, c.AppsV1().Deployments("prod").Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &policy}))
		assert.Equal(t, want.owner, api.Get("deployments", "prod", "web") != nil, policy)
		pod := api.Pod("prod", "web-1")
		require.NotNil(t, pod, "it is terminated by its node")
		if policy == metav1.DeletePropagationOrphan {
			assert.Nil(t, pod.DeletionTimestamp)
			assert.Empty(t, pod.OwnerReferences)
			continue
		}
		assert.NotNil(t, pod.DeletionTimestamp, policy)
		require.NoError(t, c.CoreV1().Pods("prod").Delete(t.Context(), "web-1", *metav1.NewDeleteOptions(0)))
		assert.Nil(t, api.Pod("prod", "web-1"))
		assert.Nil(t, api.Get("deployments", "prod", "web"), policy)
	}
}

func TestFinalizersDelayTheDeletion(t *testing.T) {
	api := new(apitest.Server)
	maps := connect(t, api.RESTConfig()).CoreV1().ConfigMaps("prod")
	api.Put(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "c", Finalizers: []string{"example.com/x"}}})
	require.NoError(t, maps.Delete(t.Context(), "c", metav1.DeleteOptions{}))
	c, err := maps.Get(t.Context(), "c", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, c.DeletionTimestamp)
	c.Finalizers = nil
	_, err = maps.Update(t.Context(), c, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Nil(t, api.Get("configmaps", "prod", "c"))
}

func TestNamespacesAreDeletedWithTheirContents(t *testing.T) {
	api := &apitest.Server{RequireNamespaces: true}
	c := connect(t, api.RESTConfig()).CoreV1()
	_, err := c.ConfigMaps("prod").Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = c.Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.ConfigMaps("prod").Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.Pods("prod").Create(t.Context(), newPod("web", "n1"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.Namespaces().Delete(t.Context(), "prod", metav1.DeleteOptions{}))
	ns, err := c.Namespaces().Get(t.Context(), "prod", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, v1.NamespaceTerminating, ns.Status.Phase, "a pod still terminates")
	assert.Nil(t, api.Get("configmaps", "prod", "c"))
	_, err = c.ConfigMaps("prod").Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{})
	assert.True(t, apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause), "%v", err)
	require.NoError(t, c.Pods("prod").Delete(t.Context(), "web", *metav1.NewDeleteOptions(0)))
	_, err = c.Namespaces().Get(t.Context(), "prod", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestEvictionHonorsBudgets(t *testing.T) {
	api := new(apitest.Server)
	for _, name := range []string{"a", "b"} {
		pod := labeled(name, "web")
		pod.Status = v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
		api.Put(pod)
	}
	api.Put(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}})
	pods := connect(t, api.RESTConfig()).CoreV1().Pods("prod")
	evict := func(name string) error {
		return pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name}})
	}
	require.NoError(t, evict("a"))
	a := api.Pod("prod", "a")
	require.NotNil(t, a.DeletionTimestamp)
	assert.Equal(t, v1.DisruptionTarget, a.Status.Conditions[1].Type)
	err := evict("b")
	assert.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	assert.True(t, apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause))
	assert.Nil(t, api.Pod("prod", "b").DeletionTimestamp)
	assert.True(t, apierrors.IsNotFound(evict("missing")))
}

func TestAdmissionMutatesAndRejects(t *testing.T) {
	api := &apitest.Server{Admit: func(c apitest.Call, old, next runtime.Object) error {
		pod, ok := next.(*v1.Pod)
		switch {
		case ok && old == nil:
			metav1.SetMetaDataLabel(&pod.ObjectMeta, "admitted", "true")
		case c.Verb == "delete":
			return errors.New("not today")
		}
		return nil
	}}
	pods := connect(t, api.RESTConfig()).CoreV1().Pods("prod")
	pod, err := pods.Create(t.Context(), newPod("web", "n1"), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, "true", pod.Labels["admitted"])
	err = pods.Delete(t.Context(), "web", metav1.DeleteOptions{})
	assert.True(t, apierrors.IsForbidden(err))
	assert.ErrorContains(t, err, "not today")
}

func TestCollectionsAreDeleted(t *testing.T) {
	api := new(apitest.Server)
	api.Put(labeled("a", "web"), labeled("b", "web"), labeled("c", "db"))
	pods := connect(t, api.RESTConfig()).CoreV1().Pods("prod")
	require.NoError(t, pods.DeleteCollection(t.Context(), *metav1.NewDeleteOptions(0), metav1.ListOptions{LabelSelector: "app=web"}))
	assert.Len(t, api.List("pods"), 1)
}

// Objects of Put may lack the defaults that an update of them sets.
func TestPodsThatWerePutCanBeUpdated(t *testing.T) {
	api := new(apitest.Server)
	api.Put(newPod("web", "n1"))
	pods := connect(t, api.RESTConfig()).CoreV1().Pods("prod")
	pod, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	pod.Labels = map[string]string{"a": "b"}
	pod, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	pod.Spec.Hostname = "other"
	_, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
}

func TestReplicationControllersSelectTheirTemplate(t *testing.T) {
	s := new(apitest.Server)
	client := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().ReplicationControllers("default")
	labels := map[string]string{"app": "web"}
	rc := &v1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: v1.ReplicationControllerSpec{Template: &v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "nginx"}}},
		}},
	}
	got, err := client.Create(t.Context(), rc, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, labels, got.Spec.Selector)
	assert.Equal(t, labels, got.Labels)
	rc.Name, rc.Labels, rc.Spec.Selector = "own", map[string]string{"a": "b"}, map[string]string{"app": "web", "x": "y"}
	got, err = client.Create(t.Context(), rc, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, []map[string]string{rc.Labels, rc.Spec.Selector}, []map[string]string{got.Labels, got.Spec.Selector})
}
