package podenv_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime/podenv"
)

func pod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u1",
			Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{"a/b": "c"}},
		Spec: v1.PodSpec{NodeName: "n1", ServiceAccountName: "sa",
			Volumes: []v1.Volume{
				{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
				{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}},
			},
			Containers: []v1.Container{{Name: "other", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m")},
				Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("100Mi"), "hugepages-2Mi": resource.MustParse("8Mi")},
			}}, {Name: "bare"}},
			InitContainers: []v1.Container{{Name: "init"}},
		},
	}
}

// inputs returns a pod and everything that its variables may refer to.
func inputs() podenv.Inputs {
	return podenv.Inputs{
		Pod:     pod(),
		PodIPs:  []string{"fd00::1", "10.0.0.1", "10.0.0.2"},
		HostIPs: []string{"192.0.2.1", "2001:db8::1"},
		Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("3500m"), v1.ResourceMemory: resource.MustParse("8Gi"),
			v1.ResourceEphemeralStorage: resource.MustParse("20Gi"), "hugepages-2Mi": resource.MustParse("1Gi"),
		},
		ConfigMaps: map[string]podenv.Fetched[*v1.ConfigMap]{
			"settings": {Object: &v1.ConfigMap{
				Data:       map[string]string{"LEVEL": "debug", "COLOR": "red", "RAW": "$(COLOR)"},
				BinaryData: map[string][]byte{"BINARY": []byte("x")},
			}},
			"gone":   {Err: fs.ErrNotExist},
			"broken": {Err: errors.New("connection refused")},
		},
		Secrets: map[string]podenv.Fetched[*v1.Secret]{
			"db":     {Object: &v1.Secret{Data: map[string][]byte{"PASSWORD": []byte("hunter2"), "COLOR": []byte("blue")}}},
			"gone":   {Err: fs.ErrNotExist},
			"broken": {Err: errors.New("connection refused")},
		},
		Files: map[podenv.File]podenv.Fetched[[]byte]{
			{Volume: "scratch", Path: "config.env"}: {Object: []byte("DB='one'\nDB='two'\nEMPTY=''\n")},
			{Volume: "scratch", Path: "gone"}:       {Err: fs.ErrNotExist},
			{Volume: "scratch", Path: "bad"}:        {Object: []byte("DB=one\n")},
			{Volume: "scratch", Path: "broken"}:     {Err: errors.New("input/output error")},
		},
		Services: []*v1.Service{service("prod", "db", "10.96.0.7", port("", 5432))},
	}
}

func fromMap(name, prefix string, optional bool) v1.EnvFromSource {
	return v1.EnvFromSource{Prefix: prefix, ConfigMapRef: &v1.ConfigMapEnvSource{
		LocalObjectReference: v1.LocalObjectReference{Name: name}, Optional: &optional}}
}

func fromSecret(name, prefix string, optional bool) v1.EnvFromSource {
	return v1.EnvFromSource{Prefix: prefix, SecretRef: &v1.SecretEnvSource{
		LocalObjectReference: v1.LocalObjectReference{Name: name}, Optional: &optional}}
}

func mapKey(name, key string, optional bool) *v1.EnvVarSource {
	return &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{
		LocalObjectReference: v1.LocalObjectReference{Name: name}, Key: key, Optional: &optional}}
}

func secretKey(name, key string, optional bool) *v1.EnvVarSource {
	return &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{
		LocalObjectReference: v1.LocalObjectReference{Name: name}, Key: key, Optional: &optional}}
}

func fieldRef(path string) *v1.EnvVarSource {
	return &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}
}

func res(container, name, divisor string) *v1.EnvVarSource {
	r := &v1.ResourceFieldSelector{ContainerName: container, Resource: name}
	if divisor != "" {
		r.Divisor = resource.MustParse(divisor)
	}
	return &v1.EnvVarSource{ResourceFieldRef: r}
}

func file(volume, path, key string, optional bool) *v1.EnvVarSource {
	return &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: volume, Path: path, Key: key, Optional: &optional}}
}

// one is a container with one variable, X.
func one(from *v1.EnvVarSource) v1.Container {
	return v1.Container{Env: []v1.EnvVar{{Name: "X", ValueFrom: from}}}
}

// show returns the variables, those of services left out, as NAME=value lines.
func show(e *podenv.Env) string {
	var lines []string
	for _, v := range e.Vars() {
		if v.Source.Kind != podenv.KindService {
			lines = append(lines, v.Name+"="+v.Value)
		}
	}
	return strings.Join(lines, " ")
}

func TestTheEnvironmentOfAContainer(t *testing.T) {
	for _, tc := range []struct {
		name string
		c    v1.Container
		want string
	}{
		{"pe-2 later layers win, in the place of the first", v1.Container{
			EnvFrom: []v1.EnvFromSource{fromMap("settings", "", false), fromSecret("db", "", false)},
			Env:     []v1.EnvVar{{Name: "LEVEL", Value: "info"}, {Name: "NEW", Value: "1"}},
		}, "COLOR=blue LEVEL=info RAW=$(COLOR) PASSWORD=hunter2 NEW=1"},
		{"pe-2 a prefix", v1.Container{EnvFrom: []v1.EnvFromSource{fromMap("settings", "S_", false)}},
			"S_COLOR=red S_LEVEL=debug S_RAW=$(COLOR)"},
		{"pe-2 a variable of a service's name", v1.Container{Env: []v1.EnvVar{{Name: "DB_SERVICE_HOST", Value: "mine"}}}, "DB_SERVICE_HOST=mine"},
		{"pe-3 optional and not found", v1.Container{EnvFrom: []v1.EnvFromSource{
			fromMap("gone", "", true), fromSecret("gone", "", true), fromSecret("db", "", true)}}, "COLOR=blue PASSWORD=hunter2"},
		{"pe-3 an entry that names nothing", v1.Container{EnvFrom: []v1.EnvFromSource{{Prefix: "X"}}}, ""},
		{"pe-4 what was defined before", v1.Container{Env: []v1.EnvVar{
			{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)-$(LATER)-$$(A)"}, {Name: "LATER", Value: "x"}, {Name: "EMPTY"},
		}}, "A=1 B=1-$(LATER)-$(A) LATER=x EMPTY="},
		{"pe-4 what envFrom defined", v1.Container{EnvFrom: []v1.EnvFromSource{fromMap("settings", "", false)},
			Env: []v1.EnvVar{{Name: "A", Value: "$(LEVEL)"}}}, "COLOR=red LEVEL=debug RAW=$(COLOR) A=debug"},
		{"pe-4 services, unless it is defined", v1.Container{Env: []v1.EnvVar{
			{Name: "URL", Value: "pg://$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)"}, {Name: "DB_SERVICE_PORT", Value: "1"}, {Name: "P", Value: "$(DB_SERVICE_PORT)"},
		}}, "URL=pg://10.96.0.7:5432 DB_SERVICE_PORT=1 P=1"},
		{"pe-4 itself, of before", v1.Container{Env: []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "$(A)2"}}}, "A=12"},
		{"pe-5 only literals are expanded", v1.Container{Env: []v1.EnvVar{
			{Name: "COLOR", Value: "green"}, {Name: "X", ValueFrom: mapKey("settings", "RAW", false)},
		}}, "COLOR=green X=$(COLOR)"},
		{"pe-6 a key", one(mapKey("settings", "LEVEL", false)), "X=debug"},
		{"pe-6 a secret's key", one(secretKey("db", "PASSWORD", false)), "X=hunter2"},
		{"pe-6 optional, no such object", one(mapKey("gone", "LEVEL", true)), ""},
		{"pe-6 optional, no such key", one(secretKey("db", "NONE", true)), ""},
		{"pe-6 omitted is not emptied", v1.Container{EnvFrom: []v1.EnvFromSource{fromSecret("db", "", false)},
			Env: []v1.EnvVar{{Name: "COLOR", ValueFrom: mapKey("gone", "COLOR", true)}}}, "COLOR=blue PASSWORD=hunter2"},
		{"pe-7 name", one(fieldRef("metadata.name")), "X=web"},
		{"pe-7 namespace", one(fieldRef("metadata.namespace")), "X=prod"},
		{"pe-7 uid", one(fieldRef("metadata.uid")), "X=u1"},
		{"pe-7 a label", one(fieldRef("metadata.labels['app']")), "X=shop"},
		{"pe-7 a label that is not there", one(fieldRef("metadata.labels['none']")), "X="},
		{"pe-7 an annotation", one(fieldRef("metadata.annotations['a/b']")), "X=c"},
		{"pe-7 node", one(fieldRef("spec.nodeName")), "X=n1"},
		{"pe-7 service account", one(fieldRef("spec.serviceAccountName")), "X=sa"},
		{"pe-7 host IP", one(fieldRef("status.hostIP")), "X=192.0.2.1"},
		{"pe-7 host IPs", one(fieldRef("status.hostIPs")), "X=192.0.2.1,2001:db8::1"},
		{"pe-7 pod IP of the node's family", one(fieldRef("status.podIP")), "X=10.0.0.1"},
		{"pe-7 pod IPs", one(fieldRef("status.podIPs")), "X=10.0.0.1,fd00::1"},
		{"pe-8 CPU in cores, rounded up", one(res("other", "requests.cpu", "")), "X=2"},
		{"pe-8 CPU in thousandths", one(res("other", "requests.cpu", "1m")), "X=1500"},
		{"pe-8 memory", one(res("other", "limits.memory", "1Mi")), "X=100"},
		{"pe-8 memory, rounded up", one(res("other", "limits.memory", "30Mi")), "X=4"},
		{"pe-8 huge pages", one(res("other", "limits.hugepages-2Mi", "")), "X=8388608"},
		{"pe-8 huge pages have no default", one(res("bare", "limits.hugepages-2Mi", "")), "X=0"},
		{"pe-8 no limit: the node's CPUs", one(res("", "limits.cpu", "")), "X=4"},
		{"pe-8 no limit: the node's memory", one(res("bare", "limits.memory", "1Gi")), "X=8"},
		{"pe-8 no limit: the node's storage", one(res("", "limits.ephemeral-storage", "1Gi")), "X=20"},
		{"pe-8 no request", one(res("", "requests.ephemeral-storage", "")), "X=0"},
		{"pe-8 an init container of that name", one(res("init", "limits.cpu", "")), "X=0"},
		{"pe-9 the first one has it", one(file("scratch", "config.env", "DB", false)), "X=one"},
		{"pe-9 optional, no such key", one(file("scratch", "config.env", "NONE", true)), ""},
		{"pe-9 optional, no file", one(file("scratch", "gone", "DB", true)), ""},
		{"pe-9 an empty value", one(file("scratch", "config.env", "EMPTY", false)), "X="},
		{"pe-9 optional, an empty value", one(file("scratch", "config.env", "EMPTY", true)), "X="},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env, err := podenv.New(inputs(), &tc.c)
			require.NoError(t, err)
			assert.Equal(t, tc.want, show(env))
		})
	}
}

func TestWhyThereIsNoEnvironment(t *testing.T) {
	none := func(in *podenv.Inputs) { in.ConfigMaps, in.Secrets, in.Files = nil, nil, nil }
	for _, tc := range []struct {
		name   string
		change func(*podenv.Inputs)
		c      v1.Container
		want   string
		is     error
	}{
		{"pe-1 services are not read", func(in *podenv.Inputs) { in.ServicesPending = true }, v1.Container{},
			"services have not yet been read at least once, cannot construct envvars", podenv.ErrServicesPending},
		{"pe-3 not found", nil, v1.Container{EnvFrom: []v1.EnvFromSource{fromMap("gone", "", false)}}, `configmap "gone" not found`, fs.ErrNotExist},
		{"pe-3 a secret not found", nil, v1.Container{EnvFrom: []v1.EnvFromSource{fromSecret("gone", "", false)}}, `secret "gone" not found`, fs.ErrNotExist},
		{"pe-3 optional is no excuse for others", nil, v1.Container{EnvFrom: []v1.EnvFromSource{fromSecret("broken", "", true)}},
			"couldn't get secret prod/broken: connection refused", nil},
		{"pe-3 not passed", nil, v1.Container{EnvFrom: []v1.EnvFromSource{fromMap("unasked", "", true)}},
			"couldn't get configMap prod/unasked: not in Inputs", nil},
		{"pe-6 no key", nil, one(mapKey("settings", "NONE", false)), "couldn't find key NONE in ConfigMap prod/settings", nil},
		{"pe-6 no secret's key", nil, one(secretKey("db", "NONE", false)), "couldn't find key NONE in Secret prod/db", nil},
		{"pe-6 not found", nil, one(secretKey("gone", "K", false)), `secret "gone" not found`, fs.ErrNotExist},
		{"pe-6 other errors", nil, one(mapKey("broken", "K", true)), "couldn't get configMap prod/broken: connection refused", nil},
		{"pe-6 no source", none, one(mapKey("settings", "LEVEL", true)), "couldn't get configMap prod/settings, no kubeClient defined", podenv.ErrNoClient},
		{"pe-6 no source of secrets", none, one(secretKey("db", "K", false)), "couldn't get secret prod/db, no kubeClient defined", podenv.ErrNoClient},
		{"pe-6 no source for envFrom", none, v1.Container{EnvFrom: []v1.EnvFromSource{fromSecret("db", "", false)}},
			"couldn't get secret prod/db, no kubeClient defined", podenv.ErrNoClient},
		{"pe-7 an unknown field", nil, one(fieldRef("spec.nope")), "env X: fieldRef: unsupported fieldPath: spec.nope", nil},
		{"pe-7 another version's", nil, one(&v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v2", FieldPath: "metadata.name"}}),
			"env X: fieldRef: unsupported apiVersion: v2", nil},
		{"pe-8 an unknown container", nil, one(res("no", "limits.cpu", "")), "env X: resourceFieldRef: container no not found", nil},
		{"pe-8 neither request nor limit", nil, one(res("", "cpu", "")), "env X: resourceFieldRef: unsupported resource: cpu", nil},
		{"pe-8 an unknown resource", nil, one(res("", "limits.gold", "")), "env X: resourceFieldRef: unsupported resource: limits.gold", nil},
		{"pe-9 no key", nil, one(file("scratch", "config.env", "NONE", false)),
			`env X: fileKeyRef: couldn't find key "NONE" in file "config.env" of volume "scratch"`, nil},
		{"pe-9 no file", nil, one(file("scratch", "gone", "DB", false)), `env X: fileKeyRef: file "gone" of volume "scratch" not found`, fs.ErrNotExist},
		{"pe-9 not an env file", nil, one(file("scratch", "bad", "DB", true)),
			`env X: fileKeyRef: file "bad" of volume "scratch": line 1: the value of DB is not in single quotes`, nil},
		{"pe-9 unreadable", nil, one(file("scratch", "broken", "DB", true)),
			`env X: fileKeyRef: couldn't read file "broken" of volume "scratch": input/output error`, nil},
		{"pe-9 not passed", nil, one(file("scratch", "unasked", "DB", true)),
			`env X: fileKeyRef: couldn't read file "unasked" of volume "scratch": not in Inputs.Files`, nil},
		{"pe-9 env files are not supported", none, one(file("scratch", "config.env", "DB", false)),
			`env X: fileKeyRef: couldn't read file "config.env" of volume "scratch", env files are not supported`, nil},
		{"pe-9 out of the volume", nil, one(file("scratch", "../x", "DB", false)), `env X: fileKeyRef: path "../x" is not a local path in volume "scratch"`, nil},
		{"pe-9 not the pod's own content", nil, one(file("host", "etc/shadow", "DB", false)), `env X: fileKeyRef: volume "host" is not an emptyDir`, nil},
		{"pe-9 no volume", nil, one(file("none", "x", "DB", false)), `env X: fileKeyRef: no volume "none" in the pod`, nil},
		{"an unknown source", nil, one(&v1.EnvVarSource{}), "env X: unsupported or empty valueFrom", nil},
		{"no name", nil, v1.Container{Env: []v1.EnvVar{{Value: "x"}}}, "env[0]: empty variable name", nil},
		{"a name that isn't one", nil, v1.Container{Env: []v1.EnvVar{{Name: "A=B"}}}, `env[0]: invalid variable name "A=B"`, nil},
		{"a prefix that isn't one", nil, v1.Container{EnvFrom: []v1.EnvFromSource{fromSecret("db", "A=", false)}},
			`envFrom[0], secret db, key COLOR: invalid variable name "A=COLOR"`, nil},
		{"a zero byte", nil, v1.Container{Env: []v1.EnvVar{{Name: "A", Value: "x\x00y"}}}, "env[0]: the value of A contains a zero byte", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := inputs()
			if tc.change != nil {
				tc.change(&in)
			}
			_, err := podenv.New(in, &tc.c)
			require.EqualError(t, err, tc.want)
			if tc.is != nil {
				assert.ErrorIs(t, err, tc.is)
			}
			for _, other := range []error{podenv.ErrNoClient, fs.ErrNotExist, podenv.ErrServicesPending} {
				assert.Equal(t, other == tc.is, errors.Is(err, other), "it is not %v too", other)
			}
		})
	}
}

func TestStaticPodsDoNotWaitForServices(t *testing.T) { // pe-1
	in := inputs()
	in.ServicesPending = true
	in.Pod.Annotations["kubernetes.io/config.source"] = "file"
	_, err := podenv.New(in, &v1.Container{})
	assert.NoError(t, err)
}

func TestTheAPIServersNotFoundIsNotFound(t *testing.T) { // pe-3
	in := inputs()
	in.ConfigMaps["api"] = podenv.Fetched[*v1.ConfigMap]{Err: fmt.Errorf("get: %w", apiError{metav1.StatusReasonNotFound})}
	in.ConfigMaps["empty"] = podenv.Fetched[*v1.ConfigMap]{}
	in.ConfigMaps["denied"] = podenv.Fetched[*v1.ConfigMap]{Err: apiError{metav1.StatusReasonForbidden}}
	for _, name := range []string{"api", "empty"} {
		_, err := podenv.New(in, &v1.Container{EnvFrom: []v1.EnvFromSource{fromMap(name, "", true)}})
		assert.NoError(t, err, name)
	}
	_, err := podenv.New(in, &v1.Container{EnvFrom: []v1.EnvFromSource{fromMap("denied", "", true)}})
	assert.ErrorIs(t, err, in.ConfigMaps["denied"].Err)
}

// apiError has the method of client-go errors that podenv calls.
type apiError struct{ reason metav1.StatusReason }

func (e apiError) Error() string         { return string(e.reason) }
func (e apiError) Status() metav1.Status { return metav1.Status{Reason: e.reason} }

func TestALimitOfThePodIsADefaultForItsContainers(t *testing.T) { // pe-8
	in := inputs()
	in.Pod.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}}
	env, err := podenv.New(in, &v1.Container{Env: []v1.EnvVar{
		{Name: "CPU", ValueFrom: res("", "limits.cpu", "")}, {Name: "MEM", ValueFrom: res("", "limits.memory", "1Gi")},
	}})
	require.NoError(t, err)
	assert.Equal(t, "CPU=2 MEM=8", show(env))
}

func TestPodIPsFollowTheNodesFamily(t *testing.T) { // pe-7
	c := one(fieldRef("status.podIPs"))
	for _, tc := range []struct{ pod, host, want string }{
		{"10.0.0.1,fd00::1", "2001:db8::1,192.0.2.1", "fd00::1,10.0.0.1"},
		{"fd00::1,10.0.0.1", "192.0.2.1", "10.0.0.1,fd00::1"},
		{"fd00::1,10.0.0.1", "", "fd00::1,10.0.0.1"},
		{"10.0.0.1", "2001:db8::1", "10.0.0.1"},
		{"rubbish,10.0.0.1", "rubbish,192.0.2.1", "10.0.0.1"},
		{"", "192.0.2.1", ""},
	} {
		in := podenv.Inputs{Pod: pod(), PodIPs: strings.Split(tc.pod, ","), HostIPs: strings.Split(tc.host, ",")}
		env, err := podenv.New(in, &c)
		require.NoError(t, err)
		assert.Equal(t, "X="+tc.want, show(env), "%v", tc)
	}
}

func TestArgumentsAreExpanded(t *testing.T) { // pe-13
	env, err := podenv.New(inputs(), &v1.Container{Env: []v1.EnvVar{{Name: "NAME", Value: "web"}}})
	require.NoError(t, err)
	args, err := env.ExpandAll([]string{"serve", "--name=$(NAME)", "--db=$(DB_SERVICE_HOST)", "$(NO)", "$$(NAME)"})
	require.NoError(t, err)
	assert.Equal(t, []string{"serve", "--name=web", "--db=10.96.0.7", "$(NO)", "$(NAME)"}, args)
	args, err = env.ExpandAll(nil)
	require.NoError(t, err)
	assert.Nil(t, args)
	assert.Equal(t, v1.EnvVar{Name: "NAME", Value: "web"}, env.EnvVars()[0])
	assert.Len(t, env.EnvVars(), len(env.Vars()))
}

// everything refers to all kinds of sources at once.
func everything() *v1.Container {
	return &v1.Container{
		EnvFrom: []v1.EnvFromSource{fromMap("settings", "", false), fromSecret("db", "DB_", false)},
		Env: []v1.EnvVar{
			{Name: "LITERAL", Value: "$(LEVEL)"}, {Name: "IP", ValueFrom: fieldRef("status.podIP")},
			{Name: "CPU", ValueFrom: res("other", "requests.cpu", "1m")}, {Name: "KEY", ValueFrom: mapKey("settings", "LEVEL", true)},
			{Name: "LEVEL", ValueFrom: secretKey("db", "PASSWORD", false)}, {Name: "FILE", ValueFrom: file("scratch", "config.env", "DB", false)},
		},
	}
}

func TestSourcesOfVariables(t *testing.T) {
	env, err := podenv.New(inputs(), everything())
	require.NoError(t, err)
	var lines []string
	for _, v := range env.Vars() {
		lines = append(lines, v.Name+": "+v.Source.String())
	}
	assert.Equal(t, []string{
		"COLOR: envFrom[0], configMap settings, key COLOR",
		"LEVEL: env[4], secret db, key PASSWORD",
		"RAW: envFrom[0], configMap settings, key RAW",
		"DB_COLOR: envFrom[1], secret db, key COLOR",
		"DB_PASSWORD: envFrom[1], secret db, key PASSWORD",
		"LITERAL: env[0]",
		"IP: env[1], field status.podIP",
		"CPU: env[2], resource requests.cpu",
		"KEY: env[3], configMap settings, key LEVEL",
		"FILE: env[5], file config.env:DB in volume scratch",
		"DB_SERVICE_HOST: service db", "DB_SERVICE_PORT: service db", "DB_PORT: service db",
		"DB_PORT_5432_TCP: service db", "DB_PORT_5432_TCP_PROTO: service db", "DB_PORT_5432_TCP_PORT: service db", "DB_PORT_5432_TCP_ADDR: service db",
	}, lines)
}

func TestAThousandRunsAreIdentical(t *testing.T) { // pe-10
	in := inputs()
	for i := range 20 {
		in.Services = append(in.Services, service("prod", fmt.Sprintf("s%d", i), "10.96.1.1", port("http", 80), port("dns", 53)))
		in.ConfigMaps["settings"].Object.Data[fmt.Sprintf("K%d", i)] = "v"
	}
	first, err := podenv.New(in, everything())
	require.NoError(t, err)
	for i := range 999 {
		// The order in which services come must not show either.
		at := i % len(in.Services)
		in.Services = append(append([]*v1.Service{}, in.Services[at:]...), in.Services[:at]...)
		again, err := podenv.New(in, everything())
		require.NoError(t, err)
		require.True(t, slices.Equal(first.Vars(), again.Vars()))
	}
}

func TestReferencesListsEachObjectOnce(t *testing.T) {
	c := everything()
	c.EnvFrom = append(c.EnvFrom, fromMap("extra", "", true), fromMap("extra", "P_", true), fromSecret("maybe", "", true))
	c.Env = append(c.Env,
		v1.EnvVar{Name: "E", ValueFrom: secretKey("maybe", "K", false)},
		v1.EnvVar{Name: "F", ValueFrom: file("scratch", "config.env", "OTHER", true)},
		v1.EnvVar{Name: "G", ValueFrom: file("scratch", "maybe.env", "K", true)},
		v1.EnvVar{Name: "H", ValueFrom: file("host", "etc/shadow", "K", true)}, // fails without being read
		v1.EnvVar{Name: "I", ValueFrom: file("scratch", "../out", "K", true)},
	)
	configMaps, secrets, files := podenv.References(pod(), c)
	assert.Equal(t, []string{"settings", "extra"}, configMaps)
	assert.Equal(t, []string{"db", "maybe"}, secrets)
	assert.Equal(t, []podenv.File{{Volume: "scratch", Path: "config.env"}, {Volume: "scratch", Path: "maybe.env"}}, files)
	configMaps, secrets, files = podenv.References(pod(), &v1.Container{})
	assert.Empty(t, len(configMaps)+len(secrets)+len(files))
}
