package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/internal/conformance"
)

const file = `About it.

=== create
POST /api/v1/namespaces
Accept: text/html
@until: 201

{"metadata":{"name":"a"}}
--- 201
Content-Type: application/json
Warning: 299 - "w"

metadata:
  name: a

=== get
GET /api/v1/namespaces/a
`

func TestFormatIsTheInverseOfParse(t *testing.T) {
	s, err := conformance.Parse("s", file)
	require.NoError(t, err)
	assert.Equal(t, "About it.", s.About)
	require.Len(t, s.Calls, 2)
	assert.Equal(t, &conformance.Call{
		Name: "create", Method: "POST", Path: "/api/v1/namespaces", Body: `{"metadata":{"name":"a"}}`,
		Headers: [][2]string{{"Accept", "text/html"}, {"@until", "201"}},
		Answer: &conformance.Answer{
			Code: 201, Headers: map[string]string{"Content-Type": "application/json", "Warning": `299 - "w"`},
			Body: map[string]any{"metadata": map[string]any{"name": "a"}},
		},
	}, s.Calls[0])
	assert.Nil(t, s.Calls[1].Answer, "not recorded")

	text, err := conformance.Format(s)
	require.NoError(t, err)
	assert.Equal(t, file, text)
}

func TestInvalidScenariosAreErrors(t *testing.T) {
	for want, text := range map[string]string{
		"no request":                  "About it.\n",
		"the name is not unique":      "=== a\nGET /\n\n=== a\nGET /\n",
		"is not a method and a path":  "=== a\nGET\n",
		"neither a header nor a dire": "=== a\nGET /\n@untli: 404\n",
		"parse response":              "=== a\nGET /\n--- 200\n\n{\n",
	} {
		_, err := conformance.Parse("s", text)
		assert.ErrorContains(t, err, want)
	}
}
