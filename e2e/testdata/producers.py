"""Writes documents with other people's producers: librdkafka with two partitioners, and kafka-python.

Usage: producers.py BROKER TOPIC COUNT
Each producer writes COUNT documents <name>-<i> and then each of them once more, changed.
"""
import json
import sys

from confluent_kafka import Producer
from kafka import KafkaProducer

broker, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])


def documents(name):
    for version in ("first", "second"):
        for i in range(count):
            yield f"{name}-{i}", json.dumps({"text": f"The {version} text of {name} {i}."}).encode()


for name, partitioner in (("murmur2", "murmur2_random"), ("crc32", "consistent_random")):
    p = Producer({"bootstrap.servers": broker, "partitioner": partitioner, "acks": "all", "enable.idempotence": True})
    failed = []
    for key, value in documents(name):
        p.produce(topic, key=key.encode(), value=value, on_delivery=lambda err, _: err and failed.append(err))
    left = p.flush(60)
    if failed or left:
        sys.exit(f"{name}: {left} left, {failed}")

k = KafkaProducer(bootstrap_servers=broker, acks="all")
for future in [k.send(topic, key=key.encode(), value=value) for key, value in documents("kafkapython")]:
    future.get(60)
k.close()
print("ok")
