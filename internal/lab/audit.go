package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// auditPolicy records who creates, deletes, and binds pods.
const auditPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived"],"rules":[
{"level":"Request","verbs":["create","delete","deletecollection"],"resources":[{"resources":["pods","pods/binding","pods/eviction"]}],"omitManagedFields":true},
{"level":"None"}]}`

// PodRequests returns the requests so far that created, bound, evicted or deleted pods of a namespace, one per line,
// for the output of a test that has failed.
func (c *ControlPlane) PodRequests(namespace string) ([]string, error) {
	f, err := os.Open(c.file("audit.log"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e struct {
			RequestReceivedTimestamp, StageTimestamp, Verb, UserAgent string
			User                                                      struct{ Username string }
			ObjectRef                                                 struct{ Namespace, Name, Subresource string }
			ResponseStatus                                            struct{ Code int }
			RequestObject                                             struct {
				Metadata           struct{ Name, UID string }
				Preconditions      json.RawMessage
				GracePeriodSeconds *int64
			}
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.ObjectRef.Namespace != namespace {
			continue // the last line may be incomplete
		}
		name, grace := e.ObjectRef.Name, "default"
		if name == "" {
			name = e.RequestObject.Metadata.Name
		}
		if s := e.RequestObject.GracePeriodSeconds; s != nil {
			grace = fmt.Sprint(*s, " s")
		}
		out = append(out, fmt.Sprintf("%s to %s: %s %s %s of %s: code %d, UID %q, preconditions %s, grace period %s", e.RequestReceivedTimestamp, e.StageTimestamp, e.User.Username, e.Verb,
			name+"/"+e.ObjectRef.Subresource, e.UserAgent, e.ResponseStatus.Code, e.RequestObject.Metadata.UID, e.RequestObject.Preconditions, grace))
	}
	return out, lines.Err()
}
