package conformance_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/internal/conformance"
)

// A script answers each request with the next body.
type script struct {
	bodies []string
	seen   []string
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/api/v1/namespaces" {
		return rec.Result(), nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.seen = append(s.seen, fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body))
	_, err = rec.WriteString(s.bodies[0])
	s.bodies = s.bodies[1:]
	return rec.Result(), err
}

// run returns the bodies of the normalized responses, and the requests.
func run(t *testing.T, calls string, bodies ...string) (answers []any, seen []string, err error) {
	t.Helper()
	s, err := conformance.Parse("s", calls)
	require.NoError(t, err)
	target := &script{bodies: bodies}
	synctest.Test(t, func(t *testing.T) {
		var got []*conformance.Answer
		got, err = conformance.Target{URL: "http://server", Transport: target}.Run(t.Context(), s)
		for _, a := range got {
			if a == nil {
				answers = append(answers, nil)
				continue
			}
			answers = append(answers, a.Body)
		}
	})
	return answers, target.seen, err
}

type object = map[string]any

func TestValuesOfARunAreReplaced(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339) // of a bubble
	got, _, err := run(t, "=== a\nPOST /x\n\n{\"metadata\":{\"generateName\":\"g-\"}}\n\n=== b\nGET /x\n\n=== c\nGET /x\n",
		`{"metadata":{"name":"g-abcde","uid":"u1","resourceVersion":"7","creationTimestamp":"`+now+`"}}`,
		`{"metadata":{"name":"old","uid":"u2","resourceVersion":"5","creationTimestamp":"1990-01-01T00:00:00Z"},"message":"g-abcde is u1"}`,
		`{"items":[{"metadata":{"name":"x","uid":"u1","resourceVersion":"7"}}],"metadata":{"resourceVersion":"9","continue":"abc"}}`)
	require.NoError(t, err)
	assert.Equal(t, []any{
		object{"metadata": object{"name": "g-<generated>", "uid": "<uid of a>", "resourceVersion": "<version of a>", "creationTimestamp": "<time>"}},
		object{"metadata": object{"name": "old", "uid": "<uid of b>", "resourceVersion": "<version of b>, less than <version of a>", "creationTimestamp": "1990-01-01T00:00:00Z"}, "message": "g-<generated> is <uid of a>"},
		object{"items": []any{object{"metadata": object{"name": "x", "uid": "<uid of a>", "resourceVersion": "<version of a>"}}}, "metadata": object{"resourceVersion": "at least <version of a>", "continue": "<continue>"}},
	}, got)
}

func TestRequestsUseEarlierResponses(t *testing.T) {
	_, seen, err := run(t, "=== a\nGET /x\n\n=== b\nPUT /x?v=${a|metadata.resourceVersion}\n\n${a|items.0.n}${y*3}\n",
		`{"metadata":{"resourceVersion":"7"},"items":[{"n":4}]}`, `{}`)
	require.NoError(t, err)
	assert.Equal(t, []string{"GET /x ", "PUT /x?v=7 4yyy"}, seen)

	got, seen, err := run(t, "=== a\nGET /x\n\n=== b\nGET /${a|missing}\n", `{}`)
	assert.ErrorContains(t, err, `scenario s: request "b": not sent: the response to "a" has no missing`)
	assert.Equal(t, []any{object{}, nil}, got)
	assert.Equal(t, []string{"GET /x "}, seen)
}

func TestARequestIsRepeatedUntilTheResponseContainsTheText(t *testing.T) {
	got, seen, err := run(t, "=== a\nGET /x\n@until: done\n", `{"s":"not yet"}`, `{"s":"done"}`)
	require.NoError(t, err)
	assert.Equal(t, []any{object{"s": "done"}}, got)
	assert.Len(t, seen, 2)
}

func TestAWatchEndsAfterItsEvents(t *testing.T) {
	got, _, err := run(t, "=== a\nGET /x?watch=true\n@events: 2\n", "{\"type\":\"A\"}\n{\"type\":\"B\"}\n{\"type\":\"C\"}\n")
	require.NoError(t, err)
	assert.Equal(t, []any{[]any{object{"type": "A"}, object{"type": "B"}}}, got)
}

func TestOnlyKeptFieldsAreCompared(t *testing.T) {
	got, _, err := run(t, "=== a\nGET /x\n@keep: items.n\n@keep: items.(n=b.c).v\n", `{"items":[{"n":"a","v":1},{"n":"b.c","v":2}],"other":1}`)
	require.NoError(t, err)
	assert.Equal(t, []any{object{"items.n": []any{"a", "b.c"}, "items.(n=b.c).v": []any{2.0}}}, got)
}

func TestManagedFieldsAreSummarized(t *testing.T) {
	const body = `{"metadata":{"managedFields":[{"manager":"z","operation":"Update","apiVersion":"v1","subresource":"status"},{"manager":"a","operation":"Apply","apiVersion":"v1"}]}}`
	got, _, err := run(t, "=== a\nGET /x\n", body)
	require.NoError(t, err)
	assert.Equal(t, []any{object{"metadata": object{"managedFields": "a Apply v1, z Update v1 status"}}}, got)
}
