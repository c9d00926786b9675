"""A training run that a test launches in one process or several; writes what came of it as JSON.

Arguments: a JSON object with model, out, lists, settings and adapter.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch

from hf_qualcode.rerank import RerankTrainer
from hf_qualcode.rerank.backbones import load_backbone
from tests.rerank.material import config, curve, lora, ragged_lists


def run(job):
    """What came of the run on this process."""
    torch.manual_seed(0)
    backbone = load_backbone(job["model"], training=True)
    lists = ragged_lists(job["lists"])
    trainer = RerankTrainer(
        backbone, config(job["out"], **job["settings"]), lists, eval_lists=ragged_lists(5, seed=9),
        peft_config=lora() if job.get("adapter") else None,
    )  # fmt: skip
    if job.get("in_step"):
        # What a model that is spread over processes needs, on one that is not.
        trainer._in_step = True
    trainer.train(resume_from_checkpoint=job.get("resume"))
    metrics = trainer.evaluate()
    weights = torch.cat([weight.detach().flatten() for weight in trainer.model.parameters()])
    each = ragged_lists(1, seed=4)[0]
    size = len(each.codes)
    return {
        "process": trainer.args.process_index,
        "world": trainer.args.world_size,
        "loss": curve(trainer),
        "metrics": {name: value for name, value in metrics.items() if "mrr" in name or "ndcg" in name},
        "weights": weights[:: max(1, len(weights) // 2000)].tolist(),
        "digest": hashlib.sha256(weights.numpy().tobytes()).hexdigest(),
        "scores": trainer.score([each.instruction] * size, [each.query] * size, each.codes).tolist(),
    }


def main():
    job = json.loads(sys.argv[1])
    result = run(job)
    path = Path(job["out"], f"result-{result.pop('process')}.json")
    path.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
