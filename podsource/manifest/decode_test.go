package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

const webYAML = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: nginx
    image: nginx:1.29
`

func TestDecodeTakesOnePod(t *testing.T) {
	for name, data := range map[string]string{
		"YAML":                          webYAML,
		"leading marker":                "---\n" + webYAML,
		"trailing marker":               webYAML + "---\n",
		"marker without newline":        webYAML + "---",
		"both, with comments":           "# a pod\n---\n# it\n" + webYAML + "---\n# nothing more\n",
		"many markers":                  "---\n---\n" + webYAML + "---\n---\n",
		"end marker":                    webYAML + "...\n",
		"directive":                     "%YAML 1.1\n---\n" + webYAML,
		"carriage returns":              strings.ReplaceAll("---\n"+webYAML, "\n", "\r\n"),
		"byte order mark":               "\ufeff" + webYAML,
		"JSON":                          `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"nginx","image":"nginx:1.29"}]}}`,
		"JSON with tabs":                "{\n\t\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"web\"}, \"spec\": {\"containers\": [{\"name\": \"nginx\", \"image\": \"nginx:1.29\"}]}\n}\n",
		"flow style":                    `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: nginx, image: "nginx:1.29"}]}}`,
		"marker text inside a scalar":   strings.Replace(webYAML, "name: web", "name: web\n  annotations: {a: \"x --- y\"}", 1),
		"content on the marker's line ": `--- {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: nginx, image: "nginx:1.29"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			pod, err := manifest.Decode([]byte(data))
			require.NoError(t, err)
			assert.Equal(t, "web", pod.Name)
			require.Len(t, pod.Spec.Containers, 1)
			assert.Equal(t, "nginx:1.29", pod.Spec.Containers[0].Image)
			assert.Empty(t, pod.Spec.RestartPolicy, "no defaults")
		})
	}
}

func TestDecodeNamesTheCulprit(t *testing.T) {
	replace := func(old, with string) string {
		require.Contains(t, webYAML, old)
		return strings.Replace(webYAML, old, with, 1)
	}
	json := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`
	for name, tc := range map[string]struct {
		data string
		want []string
	}{
		"empty":                 {"", []string{"is empty; one pod per file"}},
		"comments only":         {"# none\n---\n", []string{"is empty"}},
		"two documents":         {webYAML + "---\n" + webYAML, []string{"has 2 documents; one pod per file"}},
		"three documents":       {webYAML + "---\n" + webYAML + "...\n---\n" + webYAML, []string{"has 3 documents"}},
		"two, carriage returns": {strings.ReplaceAll(webYAML+"---\n"+webYAML, "\n", "\r"), []string{"has 2 documents"}},
		"second one is broken":  {webYAML + "---\n}{", []string{"has 2 documents"}},
		"two JSON documents":    {json + "\n" + json, []string{"has 2 documents; one pod per file"}},
		"malformed YAML":        {replace("  name: web", "  name: web\n\tx: y"), []string{"line 5"}},
		"malformed YAML after blank document": {
			"---\n---\n" + replace("  name: web", "  name: web\n\tx: y"), []string{"line 7"}},
		"duplicate key":            {replace("  name: web", "  name: web\n  name: db"), []string{"line 5", `"name"`}},
		"rubbish after the braces": {json + "\nkind: Pod", []string{"json: line 2"}},
		"rubbish after flow style": {"{apiVersion: v1, kind: Pod}\n{b: 2}", []string{"json: line 1"}},
		"malformed JSON":           {"{\n\"apiVersion\": \"v1\",\n\"kind\" \"Pod\"}", []string{"json: line 3"}},
		"truncated JSON":           {"{\n\"apiVersion\": \"v1\",\n", []string{"json: line 2: unexpected end"}},
		"a list":                   {"- a\n- b\n", []string{`is no Pod but ["a","b"]`}},
		"a word":                   {"hello", []string{`is no Pod but "hello"`}},
		"null":                     {"null", []string{`apiVersion: Required value: must be "v1"`, "; kind: Required value"}},
		"UTF-16":                   {"\xff\xfea\x00", []string{"is not UTF-8 text"}},
		"kind":                     {replace("kind: Pod", "kind: Deployment"), []string{`kind: Unsupported value: "Deployment": supported values: "Pod"`}},
		"kind is missing":          {replace("kind: Pod", ""), []string{`kind: Required value`}},
		"kind, wrong case of key": {
			replace("kind: Pod", "Kind: Pod"), []string{`kind: Required value`}},
		"apiVersion": {replace("apiVersion: v1", "apiVersion: v2"), []string{`apiVersion: Unsupported value: "v2"`}},
		"unknown field": {
			replace("image: nginx", "imagee: nginx"), []string{`unknown field "spec.containers[0].imagee"`}},
		"two unknown fields": {
			replace("    image: nginx:1.29", "    imagee: a\n  hostname1: b"),
			[]string{`unknown field "spec.containers[0].imagee"`, `; unknown field "spec.hostname1"`}},
		"unknown field, wrong case": {
			replace("image: nginx", "Image: nginx"), []string{`unknown field "spec.containers[0].Image"`}},
		"JSON with a duplicate": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","name":"b"}}`, []string{`duplicate field "metadata.name"`}},
		"wrong type": {
			replace("image: nginx:1.29", "image: nginx\n    ports: [{containerPort: 80},{containerPort: http}]"),
			[]string{`spec.containers[0].ports[1].containerPort: Invalid value: "http"`}},
		"quantity": {
			replace("image: nginx:1.29", "image: nginx\n    resources: {limits: {cpu: 1, memory: 5MB5}}"),
			[]string{`spec.containers[0].resources.limits.memory: Invalid value: "5MB5"`}},
		"the same mistake twice": {
			replace("image: nginx:1.29", "image: nginx\n    ports: [{containerPort: 80},{containerPort: a},{containerPort: b}]"),
			[]string{`spec.containers[0].ports[1].containerPort: Invalid value: "a"`}},
		"a quantity that takes ages": {
			replace("image: nginx:1.29", "image: nginx\n    resources: {limits: {cpu: \"1e-999999999\", memory: 1E+99999999}}"),
			[]string{`spec.containers[0].resources.limits[cpu]: Invalid value: "1e-999999999": exponent out of range`, "limits[memory]"}},
		"one that is there twice": {
			`{"apiVersion":"v1","kind":"Pod","spec":{"overhead":{"cpu":"1e999999999","cpu":"1"}}}`, []string{`duplicate field "spec.overhead.cpu"`}},
		"a thousand mistakes": {
			webYAML + badFields(90), []string{"; and 70 more"}},
		"an object for a list": {
			replace("  containers:\n  - name: nginx\n    image: nginx:1.29", "  containers: {}"),
			[]string{`spec.containers: Invalid value: "{}"`}},
	} {
		t.Run(name, func(t *testing.T) {
			pod, err := manifest.Decode([]byte(tc.data))
			require.Error(t, err)
			assert.Nil(t, pod)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "\n")
			assert.Less(t, len(err.Error()), 1000)
		})
	}
}

func badFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  bad%d: 1\n", i+1)
	}
	return b.String()
}

func TestNumbersInTextAreNoQuantities(t *testing.T) {
	_, err := manifest.Decode([]byte(strings.Replace(webYAML, "name: web", "name: web\n  labels: {a: \"1e99999999\"}", 1)))
	assert.NoError(t, err)
}

// Whatever comes in, nothing panics, and what is valid once is valid again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(webYAML))
	f.Add([]byte(fullYAML))
	f.Add([]byte(webYAML + "---\n" + webYAML))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"resources":{"limits":{"cpu":"-1e99"}}}]}}`))
	f.Add([]byte("a: &a [*a, *a]"))
	f.Add([]byte("---\r---\u2028{"))
	f.Add([]byte(podHead + "  a: &a [x,x,x]\n  b: &b [*a,*a,*a]\n  c: [*b,*b,*b]\n"))
	f.Add([]byte(podHead + "  x: &x {k: 1}\n  containers: [{<<: *x, name: c, image: i}]\n"))
	f.Add([]byte(podHead + "  x: {a: {b: [[[[{}]]]]}}\n  ? [a]\n  : b\n"))
	f.Add([]byte(podHead + "  containers: [{name: 1, env: [{}, {name: [a]}]}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pod, err := manifest.Decode(data)
		if err != nil {
			require.Nil(t, pod)
			require.NotEmpty(t, err.Error())
			require.Less(t, len(err.Error()), 16<<10)
			return
		}
		defaulted := manifest.Default(pod)
		for _, err := range manifest.Validate(defaulted) {
			require.NotEmpty(t, err.Error())
		}
		_, _ = manifest.Static(data, "node", "fuzz", manifest.StaticOptions{})
	})
}
