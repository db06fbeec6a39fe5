package replay

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// lost sets when the runtime lost containers that the agent did not remove: since then, no list of all containers,
// or of those of the pod, has them. containerd does not load its containers if it is started with a full disk.
func (x *index) lost() {
	lists := map[types.UID][]*call{}                                  // by pod; empty for all
	last, parsed := map[string]time.Duration{}, map[string][]string{} // the end of the last list by ID; IDs by answer
	for _, c := range x.calls {
		pod, ok := listsContainersOf(c)
		if !ok {
			continue
		}
		lists[pod] = append(lists[pod], c)
		ids, ok := parsed[string(c.answer)]
		if !ok {
			ids = listedContainers(c.answer)
			parsed[string(c.answer)] = ids
		}
		for _, id := range ids {
			last[id] = max(last[id], c.end)
		}
	}
	for id, end := range last {
		t := x.things[id]
		if t == nil || t.gone > 0 {
			continue
		}
		for _, pod := range []types.UID{"", t.pod} {
			i, _ := slices.BinarySearchFunc(lists[pod], end, func(c *call, end time.Duration) int { return cmp.Compare(c.begin, end) })
			if i == len(lists[pod]) || t.remove != nil && t.remove.begin <= lists[pod][i].end {
				continue
			}
			if at := lists[pod][i].begin; t.gone == 0 || at < t.gone {
				t.gone = at
			}
		}
	}
}

// listsContainersOf returns the pod whose containers a successful call lists; empty if it
// lists all. It returns false for other calls.
func listsContainersOf(c *call) (pod types.UID, ok bool) {
	var req runtimeapi.ListContainersRequest
	if c.method != "ListContainers" || c.err != nil || c.hangs || decode(c.request, &req) != nil {
		return "", false
	}
	f := req.GetFilter()
	uid := f.GetLabelSelector()[podUIDLabel]
	return types.UID(uid), f.GetId() == "" && f.GetPodSandboxId() == "" && f.GetState() == nil && (uid == "" && len(f.GetLabelSelector()) == 0 || uid != "" && len(f.GetLabelSelector()) == 1)
}

// listedContainers returns the IDs in an answer of ListContainers.
func listedContainers(answer []byte) (ids []string) {
	var list runtimeapi.ListContainersResponse
	if decode(answer, &list) != nil {
		return nil
	}
	for _, c := range list.Containers {
		ids = append(ids, c.GetId())
	}
	return ids
}
