"""SageMaker Inference Recommender: the answer of DescribeInferenceRecommendationsJob.

It tells an endpoint's most invocations a minute and the model's latency (milliseconds) at that load, of any model and
without tokens. Where every answer is known to have so many tokens, saying so (`output_tokens`) makes a point of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, open_loop, settings, some

NAME = "SageMaker Inference Recommender"
KNOWN = "the answers of 2022 to 2026"


def recognises(document: Document) -> bool:
    """Whether this is the recommender's answer."""
    return isinstance(document.first.get("InferenceRecommendations"), list)


def runs(document: Document) -> Iterator[Run]:
    """Read every recommendation, one an instance."""
    for number, item in enumerate(document.first["InferenceRecommendations"]):
        place = f": InferenceRecommendations[{number}]"
        where = f"{document.path}{place}"
        item = v.table(item)
        v.need(item, ("Metrics.MaxInvocations", "Metrics.ModelLatency"), where, NAME, KNOWN)
        a_minute = v.positive(v.dig(item, "Metrics", "MaxInvocations"), f"{where}: MaxInvocations")
        latency = v.positive(v.dig(item, "Metrics", "ModelLatency"), f"{where}: ModelLatency")
        instance = v.clean(v.dig(item, "EndpointConfiguration", "InstanceType"), 60)
        figures = some(
            request_throughput=a_minute / 60 if a_minute else None,
            e2e={"mean": latency / 1e3} if latency else None,
        )
        load = open_loop(a_minute / 60, None) if a_minute else {}
        about = settings(instance=instance.removeprefix("ml.") if instance else None)
        yield Run(document.path, document.sha256, NAME, None, load, figures, about, place=place)
